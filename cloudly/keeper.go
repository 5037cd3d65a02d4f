package cloudly

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"serve.zone/relay/contract"
)

// keeper looks at the credential: when an attempt asks for it, when somebody says
// that it may have changed, and every credentialEvery. All reading is done by its
// one goroutine, so that a file system that hangs costs one goroutine, and what it
// tells of the file is in the order in which it was read.
type keeper struct {
	source CredentialSource
	tell   func(fresh bool, unusual *CredentialError) // whenever what is known changes

	asks chan ask      // without room: the asking goroutine waits, with a deadline
	look chan struct{} // has room for one

	// Of run alone.
	presented contract.Secret // what the current socket was or is being authenticated with
	last      known
}

// known is what was told last.
type known struct {
	told    bool
	fresh   bool
	unusual string // name, empty when the file is usable
}

// ask asks for the credential.
type ask struct {
	ctx     context.Context // of whoever waits for the answer
	present bool            // it is for a new socket
	answer  chan<- reading
}

type reading struct {
	bearer contract.Secret
	err    error
}

func newKeeper(source CredentialSource, tell func(bool, *CredentialError)) *keeper {
	return &keeper{source: source, tell: tell, asks: make(chan ask), look: make(chan struct{}, 1)}
}

// run serves until ctx ends.
func (k *keeper) run(ctx context.Context) {
	defer func() { k.presented.Zero() }()
	timer := time.NewTimer(credentialEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-k.asks:
			bearer, err := k.read(a.present)
			select {
			case a.answer <- reading{bearer, err}:
			case <-a.ctx.Done():
				bearer.Zero()
			}
		case <-k.look:
			k.glance()
		case <-timer.C:
			k.glance()
			timer.Reset(credentialEvery)
		}
	}
}

// glance reads the credential only to tell what is known of it.
func (k *keeper) glance() {
	bearer, _ := k.read(false)
	bearer.Zero()
}

// read reads the credential and tells what is known of it then. The caller zeroes
// the bearer.
func (k *keeper) read(present bool) (contract.Secret, error) {
	bearer, err := k.source.Read()
	now := known{told: true}
	var unusual *CredentialError
	if err != nil {
		if !errors.As(err, &unusual) {
			unusual = &CredentialError{CredentialUnreadable, err}
		}
		now.unusual = unusual.Name
		bearer, err = nil, unusual
	} else if present {
		k.presented.Zero()
		k.presented = append(contract.Secret(nil), bearer...)
	}
	now.fresh = err == nil && subtle.ConstantTimeCompare(bearer, k.presented) == 0
	if now != k.last {
		k.last = now
		k.tell(now.fresh, unusual)
	}
	return bearer, err
}

// bearer returns the credential as it is now. The caller zeroes it.
func (k *keeper) bearer(ctx context.Context, present bool) (contract.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, credentialWait)
	defer cancel()
	answer := make(chan reading)
	select {
	case k.asks <- ask{ctx, present, answer}:
	case <-ctx.Done():
		return nil, &CredentialError{CredentialTimeout, ctx.Err()}
	}
	select {
	case r := <-answer:
		return r.bearer, r.err
	case <-ctx.Done():
		return nil, &CredentialError{CredentialTimeout, ctx.Err()}
	}
}

// glanceSoon has the credential looked at now.
func (k *keeper) glanceSoon() {
	select {
	case k.look <- struct{}{}:
	default:
	}
}
