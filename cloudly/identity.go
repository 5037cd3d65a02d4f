package cloudly

import (
	"sync"
	"time"

	"serve.zone/relay/contract"
)

// identity is the JWT of one socket, from the exchange until the socket is left
// (contract §5.2, §20). It is zeroed when another takes its place and at the end.
type identity struct {
	mu   sync.Mutex
	jwt  contract.Secret // guarded by mu; nil when there is none
	life lifetime        // guarded by mu
	over bool            // guarded by mu; the socket was left
}

// lifetime tells when an identity should be exchanged again.
type lifetime struct {
	wall  time.Time     // when it was obtained, by the wall clock
	since time.Duration // and since the start of the session
	lasts time.Duration // how long it is good from then on; not above 0 when that is past already
}

// newLifetime reads the end that an answer states. A clock that is wrong makes it
// short or long; nothing worse follows from that than an exchange too many, or a
// call that is refused and tried again with a new identity.
func newLifetime(expiresAt *int64, wall time.Time, since time.Duration) lifetime {
	l := lifetime{wall: wall, since: since, lasts: unstatedLife}
	if expiresAt != nil {
		l.lasts = time.UnixMilli(*expiresAt).Sub(wall)
	}
	return l
}

// ageing reports whether two thirds of the life are over, by either clock: the
// wall clock may have been set back, and the other one stands still while a
// machine sleeps.
func (l lifetime) ageing(wall time.Time, since time.Duration) bool {
	due := l.lasts - l.lasts/3
	return l.lasts <= 0 || since-l.since >= due || wall.Round(0).Sub(l.wall.Round(0)) >= due
}

// set takes the place of what was held. It owns jwt, and zeroes it when the socket
// was left meanwhile.
func (i *identity) set(jwt contract.Secret, life lifetime) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.jwt.Zero()
	i.jwt, i.life = jwt, life
	if i.over {
		i.jwt.Zero()
		i.jwt = nil
	}
}

// credential returns a copy, which the caller zeroes, and whether it is ageing.
// False means that there is none.
func (i *identity) credential(wall time.Time, since time.Duration) (jwt contract.Secret, ageing, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.jwt == nil {
		return nil, false, false
	}
	return append(contract.Secret(nil), i.jwt...), i.life.ageing(wall, since), true
}

// doubt makes the identity age at once: a call with it was refused.
func (i *identity) doubt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life.lasts = 0
}

// forget zeroes the identity for good.
func (i *identity) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.jwt.Zero()
	i.jwt, i.over = nil, true
}
