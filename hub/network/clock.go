package network

import "serve.zone/relay/contract"

// Clock remembers how far ahead the wall clock was when networks came, so that setting
// it back extends no membership that begins or is renewed afterwards (contract §10.6).
// The zero Clock has seen nothing. It is not for several goroutines at once.
type Clock struct {
	ahead int64 // the highest value of wall clock less monotonic clock, in milliseconds
	seen  bool
}

// At is the instant from which the deadlines of a network are reckoned that came now.
// Its wall time is where the clock would stand now if it had never been set back: one
// that was may be wrong, and Cloudly counts on the end of what it granted.
//
// A clock that ran ahead and was put right is told from that by what Cloudly grants. It
// grants nothing that is over: when by the higher reading not one member of the network
// lives, and by the clock as it is one does, the clock as it is is right.
func (c *Clock) At(next contract.VPNNetwork, now Instant) Instant {
	if offset := now.Wall - now.Mono; !c.seen || offset > c.ahead {
		c.ahead, c.seen = offset, true
	}
	higher := Instant{Wall: max(now.Wall, now.Mono+c.ahead), Mono: now.Mono}
	if !lives(next, higher) && lives(next, now) {
		c.Trust(now)
		return now
	}
	return higher
}

// lives reports whether a network has a member that is not over.
func lives(x contract.VPNNetwork, now Instant) bool {
	for i := range x.Nodes {
		if x.Nodes[i].ExpiresAt > now.Wall {
			return true
		}
	}
	return false
}

// Trust takes the wall clock as it is for right, as after every registration with
// Cloudly (contract O36).
func (c *Clock) Trust(now Instant) { c.ahead, c.seen = now.Wall-now.Mono, true }
