package escrow

import (
	"time"

	"serve.zone/relay/contract"
)

// happened is one thing in the history of an escrow, with the clocks of that moment.
// Everything the machine is told, and asked, is one: all of it reads the clocks.
type happened struct {
	what      string // registered, lost, hold, empty, bound, unbound, suspend, drop, tick, ended
	wall      time.Time
	mono      time.Duration
	node      string
	namespace string                               // bound
	confirmed bool                                 // bound
	run       contract.HoldDNSLeaseRenewalsRequest // hold, when it was accepted
	push      *push                                // tick, ended
	how       outcome                              // ended
	accepted  bool                                 // hold, empty
}

// oracle knows nothing but the history. It is asked what may be done now, at the
// end of it, and derives that anew from the beginning each time, by the sentences
// of contract §9 and design §4.
type oracle []happened

func (h oracle) now() happened { return h[len(h)-1] }

// attachedAt tells whether a session stood after the first n things.
func (h oracle) attachedAt(n int) bool {
	for i := n - 1; i >= 0; i-- {
		switch h[i].what {
		case "registered":
			return true
		case "lost", "drop":
			return false
		}
	}
	return false
}

func (h oracle) attached() bool { return h.attachedAt(len(h)) }

// detachedFrom is the reading from which the clocks are compared: the last one that
// was taken under a session, or ended one.
func (h oracle) detachedFrom() int {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].what == "drop" || i > 0 && h.attachedAt(i) {
			return i
		}
	}
	return 0
}

// suspect tells whether some reading since showed a step back of more than 30 s,
// with no reading since at which the clock had caught up with the highest value it
// had before.
func (h oracle) suspect() bool {
	if h.attached() {
		return false
	}
	from := h.detachedFrom()
	for step := from + 1; step < len(h); step++ {
		expected := h[step-1].wall.Add(h[step].mono - h[step-1].mono)
		if expected.Sub(h[step].wall) <= 30*time.Second {
			continue
		}
		highest := h[from].wall
		for i := from; i < step; i++ {
			if would := h[i].wall.Add(h[i+1].mono - h[i].mono); would.After(highest) {
				highest = would
			}
			if h[i].wall.After(highest) {
				highest = h[i].wall
			}
		}
		caughtUp := false
		for i := step; i < len(h); i++ {
			caughtUp = caughtUp || !h[i].wall.Before(highest)
		}
		if !caughtUp {
			return true
		}
	}
	return false
}

// suspended tells whether custody may be about to end.
func (h oracle) suspended() bool {
	for i := len(h) - 1; i >= 0; i-- {
		switch h[i].what {
		case "suspend":
			if !h.attachedAt(i) {
				return h.now().mono < h[i].mono+5*time.Second
			}
		case "registered", "lost", "drop":
			return false
		}
	}
	return false
}

// bindingOf returns where the node obtained the binding it has, -1 for none.
func (h oracle) binding(node string) int {
	for i := len(h) - 1; i >= 0; i-- {
		x := h[i]
		switch {
		case x.what == "drop", x.what == "unbound" && x.node == node:
			return -1
		case x.what == "ended" && x.node == node && x.how == outcomeSocketEnded && h[:i].binding(node) == h[:i].boundFor(x.push):
			return -1
		case x.what == "bound" && x.node == node:
			return i
		}
	}
	return -1
}

// boundFor returns which binding a push was made under.
func (h oracle) boundFor(p *push) int {
	for i, x := range h {
		if x.what == "tick" && x.push == p {
			return h[:i].binding(p.node)
		}
	}
	return -1
}

// confirmed tells whether a binding is of the session that stands.
func (h oracle) confirmed(binding int) bool {
	if !h[binding].confirmed {
		return false
	}
	// Of a session that was accepted after the binding only if none stood when the
	// node obtained it: then it was of that very session.
	began := -1
	for i := len(h) - 1; i > binding; i-- {
		if h[i].what == "registered" && !h.attachedAt(i) {
			began = i
		}
	}
	if began < 0 {
		return true
	}
	for i := binding; i < began; i++ {
		if h[i].what == "lost" && h.attachedAt(i) || h[i].what == "drop" {
			return false
		}
	}
	sessions := 0
	for i := binding; i < len(h); i++ {
		if h[i].what == "registered" && !h.attachedAt(i) {
			sessions++
		}
	}
	return sessions == 1 && !h.attachedAt(binding)
}

// good tells whether the binding was held when the session was lost.
func (h oracle) good(binding int) bool {
	for i := binding + 1; i < len(h); i++ {
		if h[i].what == "lost" && h.attachedAt(i) {
			return true
		}
	}
	return false
}

// held returns what is held for a node: the records of the last accepted hold, but
// for those that ended while a session stood.
func (h oracle) held(node string) []contract.SignedDNSLeaseRenewal {
	for i := len(h) - 1; i >= 0; i-- {
		x := h[i]
		if x.what == "drop" || x.what == "empty" && x.node == node && x.accepted {
			return nil
		}
		if x.what != "hold" || x.node != node || !x.accepted {
			continue
		}
		var left []contract.SignedDNSLeaseRenewal
		for _, r := range x.run.Renewals {
			gone := false
			for j := i; j < len(h); j++ {
				gone = gone || h.attachedAt(j+1) && r.Renewal.DNS.ExpiresAt <= h[j].wall.UnixMilli()
				// The reading of the event that ends a session was taken under it.
				gone = gone || h.attachedAt(j) && h[j].what == "lost" && r.Renewal.DNS.ExpiresAt <= h[j].wall.UnixMilli()
				gone = gone || h[j].what == "bound" && h[j].node == node && h[j].namespace != r.Renewal.RuntimeNamespace
			}
			if !gone {
				left = append(left, r)
			}
		}
		return left
	}
	return nil
}

// acknowledged returns the highest sequence that the node acknowledged of a
// projection, since custody began. Nothing is asked of when it did: a session may stand
// again by then, and the push may be withdrawn.
func (h oracle) acknowledged(node string, of contract.Reference) int64 {
	var highest int64
	for _, x := range h {
		if x.what == "drop" {
			highest = 0
		}
		if x.what == "ended" && x.node == node && x.how == outcomeAcknowledged && x.accepted && x.push.target.renewal.Projection == of {
			highest = max(highest, x.push.target.renewal.Sequence)
		}
	}
	return highest
}

// flying returns the push of a node that has not ended.
func (h oracle) flying(node string) *push {
	for i := len(h) - 1; i >= 0; i-- {
		x := h[i]
		switch {
		case x.what == "drop":
			return nil
		case x.what == "ended" && x.node == node && x.accepted:
			return nil
		case x.what == "tick" && x.node == node:
			return x.push
		}
	}
	return nil
}

// allowed returns the one record that a node may be given now, and the binding that
// it is given under.
func (h oracle) allowed(node string) (contract.SignedDNSLeaseRenewal, int, bool) {
	var none contract.SignedDNSLeaseRenewal
	b := h.binding(node)
	if h.attached() || h.suspect() || h.suspended() || b < 0 || !h.good(b) {
		return none, 0, false
	}
	found := false
	best := none
	ms := h.now().wall.UnixMilli()
	for _, r := range h.held(node) {
		if w := r.Renewal.DNS; w.NotBefore <= ms && ms < w.ExpiresAt && (!found || r.Renewal.Sequence > best.Renewal.Sequence) {
			best, found = r, true
		}
	}
	if !found || best.Renewal.Sequence <= h.acknowledged(node, best.Renewal.Projection) {
		return none, 0, false
	}
	return best, b, true
}

// withdrawn tells whether a push in flight has been one that is not allowed, at the
// end of anything that happened since, but for its own end; and whether its answer is
// not waited for any more, since custody ended or another one was allowed by then.
func (h oracle) withdrawn(p *push) (withdrawn, over bool) {
	since := false
	for i, x := range h {
		if x.what == "tick" && x.push == p {
			since = true
		}
		if x.what == "ended" && x.push == p {
			return false, false
		}
		if !since {
			continue
		}
		if x.what == "drop" {
			return true, true
		}
		then := h[:i+1]
		r, b, ok := then.allowed(p.node)
		same := ok && p.target.renewal == r.Renewal.Reference() && then.boundFor(p) == b
		withdrawn = withdrawn || !same
		over = over || ok && !same
	}
	return withdrawn, over
}

// due returns what has to be pushed to a node now: what is allowed, unless a push
// is in flight, or the last one of it failed a short while ago.
func (h oracle) due(node string) (contract.SignedDNSLeaseRenewal, int, bool) {
	r, b, ok := h.allowed(node)
	if !ok || h.flying(node) != nil {
		return r, b, false
	}
	var wait time.Duration // after the last one that failed
	var last time.Duration
	for i := range h { // pushes of it that failed, one behind the other
		x := h[i]
		if x.what == "drop" {
			wait = 0
		}
		if x.what != "ended" || x.node != node || !x.accepted {
			continue
		}
		switch {
		case x.push.target.renewal != r.Renewal.Reference() || h.boundFor(x.push) != b:
			wait = 0
		case x.how == outcomeWithdrawn: // counts for nothing
		case wait == 0:
			wait, last = 5*time.Second, x.mono
		default:
			wait, last = min(2*wait, 60*time.Second), x.mono
		}
	}
	return r, b, h.now().mono >= last+wait || wait == 0
}

// refusal returns the name by which a run in order is refused now, "" for none.
func (h oracle) refusal(node string, x contract.HoldDNSLeaseRenewalsRequest) contract.RefusalName {
	b := h.binding(node)
	switch {
	case !h.attached():
		return contract.EscrowCloudlyOnly
	case len(x.Renewals) == 0:
		return ""
	case b < 0 || !h.confirmed(b):
		return contract.EscrowNodeNotCarried
	case h[b].namespace != x.Renewals[0].Renewal.RuntimeNamespace:
		return contract.EscrowRunForeignSession
	}
	current := 0
	for _, r := range x.Renewals {
		if r.Renewal.DNS.ExpiresAt > h.now().wall.UnixMilli() {
			current++
		}
	}
	held := h.held(node)
	if current == 0 || len(held) > 0 && held[0].Renewal.Projection.ID == x.Projection.ID && x.Projection.Generation < held[0].Renewal.Projection.Generation {
		return contract.EscrowRunStale
	}
	return ""
}
