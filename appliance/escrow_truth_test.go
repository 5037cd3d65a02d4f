package appliance

import (
	"slices"
	"time"
)

// span is a time, from its first instant to before its last.
type span struct{ from, to time.Time }

// holds reports whether an instant lies in one of the spans.
func holds(spans []span, t time.Time) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return !t.Before(s.from) && t.Before(s.to) })
}

// truth is what a test did to a relay, in true time, and what follows from it for
// the escrow (contract §9.5; design §4, O36). It knows nothing of how the escrow
// decides.
type truth struct {
	attached []span // a registered session to Cloudly stood
	suspect  []span // the relay's wall clock had stepped back too far
	steps    []step // of that clock, in order
}

// step is when a clock was set, and how far it has been off since.
type step struct {
	at  time.Time
	off time.Duration
}

// wall is what the relay's clock showed.
func (x *truth) wall(t time.Time) time.Time {
	off := time.Duration(0)
	for _, s := range x.steps {
		if !t.Before(s.at) {
			off = s.off
		}
	}
	return t.Add(off)
}

// open reports whether a window that opens then may be released at a time.
func (x *truth) open(opens, t time.Time) bool {
	return !holds(x.attached, t) && !holds(x.suspect, t) && !x.wall(t).Before(opens)
}

// due returns the first instant, from a given one on, at which a window that opens
// then may be released: at that instant or when something changed.
func (x *truth) due(opens, from time.Time) time.Time {
	at := []time.Time{from, opens}
	for _, s := range x.steps {
		at = append(at, s.at, opens.Add(-s.off))
	}
	for _, s := range slices.Concat(x.attached, x.suspect) {
		at = append(at, s.to)
	}
	var first time.Time
	for _, t := range at {
		if !t.Before(from) && x.open(opens, t) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
