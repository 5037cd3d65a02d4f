package ingress

import (
	"time"

	"serve.zone/relay/contract"
)

// apply decides about a table that came, by the revisions of the one held and of
// that one; 0 stands for none, since revisions are counters. It takes the place of
// the one held iff its revision is greater. now is the revision held afterwards,
// which a push is answered with (contract §11.1).
func apply(held, next int64) (takes bool, now int64) {
	if next > held {
		return true, next
	}
	return false, held
}

// held is a route table in memory.
type held struct {
	revision int64
	issuedAt time.Time
	since    time.Time // when it was applied
	origin   origin
	routes   int
	ports    int
	// answer is { table } as an ingress is answered, with the bytes of the table
	// as they came. It holds private keys: it is zeroed when nobody uses it any
	// more.
	answer []byte

	// Guarded by Ingress.mu.
	users int  // answers that are being made of it
	gone  bool // it is not held any more
}

// origin is how a table came.
type origin uint8

const (
	pushed origin = iota
	pulled
	origins // how many there are
)

var originNames = [origins]string{pushed: "pushed", pulled: "pulled"}

// String returns the name of the way.
func (o origin) String() string { return originNames[o] }

// wrapping is how many bytes an answer has around its table.
const wrapping = len(`{"table":}`)

// hold brings a table into the memory it is held in, and zeroes the other.
func hold(t contract.RouteTable, o origin) *held {
	h := &held{
		revision: t.Revision, issuedAt: time.UnixMilli(t.IssuedAt).UTC(),
		origin: o, routes: len(t.Routes), ports: len(t.PortRoutes),
	}
	// Its size is exact, so that writing leaves no copy behind.
	h.answer = contract.RouteTableAnswer{Table: &t}.AppendJSON(make([]byte, 0, len(t.Encoded)+wrapping))
	clear(t.Encoded)
	return h
}

// bytes is the size of the table, encoded; 0 for none.
func (h *held) bytes() int {
	if h == nil {
		return 0
	}
	return len(h.answer) - wrapping
}

// zero overwrites the table.
func (h *held) zero() { clear(h.answer) }

// revisionOf returns the revision of a table, 0 for none.
func revisionOf(h *held) int64 {
	if h == nil {
		return 0
	}
	return h.revision
}

// discard makes a table one that is not held any more. It reports whether the
// caller is to zero it; otherwise the last who uses it does. The caller holds mu.
func (i *Ingress) discard(h *held) (idle bool) {
	if h == nil {
		return false
	}
	h.gone = true
	return h.users == 0
}

// use takes the table that is held to make an answer of it; nil while none is. The
// caller holds mu, and calls done.
func (i *Ingress) use() *held {
	i.serving++
	if i.table != nil {
		i.table.users++
	}
	return i.table
}

// done ends a use.
func (i *Ingress) done(h *held) {
	i.mu.Lock()
	last := false
	if h != nil {
		h.users--
		last = h.gone && h.users == 0
	}
	i.mu.Unlock()
	if last {
		h.zero()
	}
	// Only now: who waits for it may rely on the memory.
	i.mu.Lock()
	i.serving--
	if i.serving == 0 {
		i.served.Broadcast()
	}
	i.mu.Unlock()
}

// decide decides about a table that came in the custody of a crew, and zeroes
// whichever does not stay. tell is told, with mu held, the revision that is held
// afterwards, and whether that custody still stands: otherwise nothing was decided.
func (i *Ingress) decide(of *crew, next *held, tell func(now int64, current bool)) {
	if over := i.decided(of, next, tell); over != nil {
		over.zero()
	}
	i.flush()
}

func (i *Ingress) decided(of *crew, next *held, tell func(int64, bool)) (over *held) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.crew != of || i.suspended() {
		i.metrics.tables.Of(next.origin, tableNotReady).Inc()
		tell(0, false)
		return next
	}
	now, over := i.take(next)
	tell(now, true)
	return over
}

// take takes a table over when its revision says so, and tells every ingress. It
// returns the revision held now, and what is to be zeroed, nil for nothing. The
// caller holds mu.
func (i *Ingress) take(next *held) (now int64, over *held) {
	takes, now := apply(revisionOf(i.table), next.revision)
	if !takes {
		i.metrics.tables.Of(next.origin, tableStale).Inc()
		return now, next
	}
	if over = i.table; !i.discard(over) {
		over = nil
	}
	i.table = next
	i.metrics.tables.Of(next.origin, tableApplied).Inc()
	i.publish(RouteTableApplied, next.facts()...)
	for _, p := range i.roles.holders {
		i.hint(p, now)
	}
	return now, over
}
