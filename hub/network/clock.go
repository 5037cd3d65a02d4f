package network

import "serve.zone/relay/contract"

// Clock remembers how far ahead the wall clock was when networks came, so that setting
// it back extends no membership that begins or is renewed afterwards (contract §10.6).
// The zero Clock has seen nothing. It is not for several goroutines at once.
type Clock struct {
	ahead int64 // the highest value of wall clock less monotonic clock, in milliseconds
	seen  bool
}

// At is the instant from which the deadlines of a network are reckoned that came now, in
// the place of held, nil for none. Its wall time is where the clock would stand now if it
// had never been set back: one that was may be wrong, and Cloudly counts on the end of what
// it granted.
//
// A clock that ran ahead and was put right is told from that by what Cloudly grants. It
// grants nothing that is over: when a member is new or renewed that is over by the higher
// reading, and not by the clock as it is, the clock as it is is right.
func (c *Clock) At(held *contract.VPNNetwork, next contract.VPNNetwork, now Instant) Instant {
	if offset := now.Wall - now.Mono; !c.seen || offset > c.ahead {
		c.ahead, c.seen = offset, true
	}
	higher := Instant{Wall: max(now.Wall, now.Mono+c.ahead), Mono: now.Mono}
	if higher.Wall > now.Wall && granted(held, next, now.Wall, higher.Wall) {
		c.Trust(now)
		return now
	}
	return higher
}

// granted reports whether a network grants a membership until a time after one and not
// after the other.
func granted(held *contract.VPNNetwork, next contract.VPNNetwork, after, until int64) bool {
	before := map[string]int64{}
	if held != nil {
		for i := range held.Nodes {
			before[held.Nodes[i].NodeID] = held.Nodes[i].ExpiresAt
		}
	}
	for i := range next.Nodes {
		n := &next.Nodes[i]
		if n.ExpiresAt > after && n.ExpiresAt <= until && n.ExpiresAt > before[n.NodeID] {
			return true
		}
	}
	return false
}

// Trust takes the wall clock as it is for right, as after every registration with
// Cloudly (contract O36).
func (c *Clock) Trust(now Instant) { c.ahead, c.seen = now.Wall-now.Mono, true }
