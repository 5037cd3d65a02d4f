package escrow

import (
	"slices"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// Status is this duty's part of the status document. It shows no record, no
// signature and no session.
type Status struct {
	Attached     bool      `json:"attached"`                // a session to Cloudly stands, so nothing is released
	ClockSuspect bool      `json:"clockSuspect"`            // nothing is released until the clock has caught up
	ClockTrusted time.Time `json:"clockTrustedAt,omitzero"` // when it will have, by the wall clock
	Draining     bool      `json:"draining"`

	Runs          int `json:"runs"`      // nodes for which something is held
	Renewals      int `json:"renewals"`  // held, whose window has not ended
	HeldBytes     int `json:"heldBytes"` // of all records
	HeldLimit     int `json:"heldLimitBytes"`
	Unreachable   int `json:"unreachable"` // nodes with a run and without a session here
	PushesRunning int `json:"pushesRunning"`

	Nodes []Node `json:"nodes"` // those that are carried, that something is held for, or that were lost in this outage; ordered by id, never nil
}

// Node is one node's coverage.
type Node struct {
	ID   string `json:"id"`
	Held int    `json:"held"` // renewals whose window has not ended
	// ExpiresAt is when the last window held ends: how long names of this node last
	// without Cloudly. It is in the past once they do not.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	NextSlot  time.Time `json:"nextSlotAt,omitzero"` // when the next window opens
	Current   *Window   `json:"current,omitempty"`   // of those held, the one to be released now

	// Reachable tells that the node has a session on a live socket of this relay, so
	// that it can be served when Cloudly is away. Once its socket breaks meanwhile,
	// it cannot until Cloudly is back.
	Reachable       bool      `json:"reachable"`
	UnreachableFrom time.Time `json:"unreachableFrom,omitzero"`
	Confirmed       bool      `json:"confirmed"` // its session is of the Cloudly session that stands, or stood last

	Released     *Delivery `json:"released,omitempty"`     // pushed last by the relay
	Acknowledged *Delivery `json:"acknowledged,omitempty"` // acknowledged last to the relay
	LastOutcome  string    `json:"lastOutcome,omitempty"`  // of the last push that has ended
	Pushing      bool      `json:"pushing"`                // a push is in flight, or its answer is waited for
	Pushes       int       `json:"pushes"`                 // of the current renewal so far
	RetryAt      time.Time `json:"retryAt,omitzero"`       // when it is pushed again
}

// Window is one renewal that is held.
type Window struct {
	Sequence  int64     `json:"sequence"`
	NotBefore time.Time `json:"notBefore"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Delivery says of which renewal something happened, and when.
type Delivery struct {
	Sequence int64     `json:"sequence"`
	At       time.Time `json:"at"`
}

// Status returns a Status.
func (e *Escrow) Status() any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.status(e.now())
}

// status shows the machine at a time, and changes nothing.
func (m *machine) status(at instant) Status {
	ms := milliseconds(at.wall)
	s := Status{
		Attached: m.attached, ClockSuspect: m.clock.suspect, Draining: m.draining,
		HeldBytes: m.held, HeldLimit: maximumHeldBytes, PushesRunning: m.flying, Nodes: make([]Node, 0, len(m.nodes)),
	}
	if m.clock.suspect {
		s.ClockTrusted = m.clock.trusted.UTC()
	}
	for _, n := range m.sorted() {
		if !n.bound && n.run == nil && !n.shown.unreachable {
			continue
		}
		v := n.status(ms)
		if n.try.next > at.mono && n.flight == nil && v.Current != nil && n.try.target.renewal.Sequence == v.Current.Sequence {
			v.RetryAt = at.wall.Add(n.try.next - at.mono).UTC()
		}
		if n.run != nil {
			s.Runs++
			s.Renewals += v.Held
			if !n.bound {
				s.Unreachable++
			}
		}
		s.Nodes = append(s.Nodes, v)
	}
	return s
}

func (n *node) status(ms int64) Node {
	v := Node{
		ID: n.id, Reachable: n.bound, Confirmed: n.confirmed, UnreachableFrom: n.shown.gone.UTC(),
		Pushing: n.flight != nil, Released: n.shown.released.shown(), Acknowledged: n.shown.acknowledged.shown(),
	}
	if n.shown.gone.IsZero() {
		v.UnreachableFrom = time.Time{}
	}
	if n.shown.any {
		v.LastOutcome = n.shown.outcome.String()
	}
	if n.run == nil {
		return v
	}
	v.Held, v.ExpiresAt = n.run.left(ms), unix(n.run.end())
	if opens, ok := n.run.next(ms); ok {
		v.NextSlot = unix(opens)
	}
	if x, ok := n.run.current(ms); ok {
		v.Current = &Window{Sequence: x.sequence, NotBefore: unix(x.notBefore), ExpiresAt: unix(x.expiresAt)}
		if n.try.target.renewal == n.run.reference(x) {
			v.Pushes = n.try.pushed
		}
	}
	return v
}

func unix(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// shown returns a copy for the status, nil when nothing happened.
func (d Delivery) shown() *Delivery {
	if d.Sequence == 0 {
		return nil
	}
	d.At = d.At.UTC()
	return &d
}

// Names of the checks. They are API.
const (
	CheckCoverage = "escrow-coverage" // advice: every node is covered if Cloudly goes away, or while it is
	CheckClock    = "escrow-clock"    // advice: the wall clock is one to release by
)

// Checks returns what an operator may want to know; nothing of it makes the relay
// not ready (design §9).
func (e *Escrow) Checks(now time.Time) []duty.Check {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.judge(now)
	return slices.Clone(e.checked[:])
}

// judge judges the checks anew. It is called at whatever may change what they say too, so that
// the age of a check is that of the change and not of who asks first. The caller holds
// mu.
func (e *Escrow) judge(now time.Time) {
	for i, c := range e.machine.checks(e.now()) {
		c.Since = now
		e.checked[i] = c.After(e.checked[i])
	}
}

// coverage counts nodes by how an outage finds them.
type coverage struct {
	bare        int       // carried, and nothing is held
	unreachable int       // something is held, and they have no session here
	ended       int       // the last window held has ended
	covered     int       // the others
	first       time.Time // when the coverage of the first of those ends
}

func (m *machine) coverage(ms int64) coverage {
	var c coverage
	for _, n := range m.nodes {
		switch {
		case n.run == nil && n.bound:
			c.bare++
		case n.run == nil:
		case !n.bound:
			c.unreachable++
		case n.run.left(ms) == 0:
			c.ended++
		default:
			c.covered++
			if end := unix(n.run.end()); c.first.IsZero() || end.Before(c.first) {
				c.first = end
			}
		}
	}
	return c
}

// checks judges without Since.
func (m *machine) checks(at instant) [2]duty.Check {
	cover := duty.Check{Name: CheckCoverage, Advice: true, State: duty.OK}
	c := m.coverage(milliseconds(at.wall))
	fail := func(reason string, count int) {
		cover.State, cover.Reason, cover.Facts = duty.Failing, reason, field.List{field.Count(count)}
	}
	switch {
	case !m.attached && c.ended > 0:
		fail("coverage-ended", c.ended)
		cover.Hint = "The last windows held for some nodes have ended while Cloudly is away; their names are not served until it is back."
	case !m.attached && c.unreachable > 0:
		fail("nodes-unreachable", c.unreachable)
		cover.Hint = "Some nodes lost their socket while Cloudly is away and cannot be given renewals until it is back; the status names them."
	case c.bare > 0:
		fail("nodes-without-run", c.bare)
		cover.State = duty.Pending
		cover.Hint = "Cloudly has handed over no renewals for some nodes; in an outage their names last until their present window ends."
	case c.covered == 0:
		cover.State, cover.Reason = duty.Pending, "nothing-held"
		cover.Hint = "No node is carried for which renewals are held."
	default:
		cover.Facts = field.List{field.Count(c.covered), field.Expires(c.first)}
	}
	clock := duty.Check{Name: CheckClock, Advice: true, State: duty.OK}
	if m.clock.suspect {
		clock.State, clock.Reason = duty.Failing, string(ClockSuspect)
		clock.Hint = "The wall clock stepped back while Cloudly is away; nothing is released until it has caught up. Look at the time service."
		clock.Facts = field.List{field.Expires(m.clock.trusted)}
	}
	return [2]duty.Check{cover, clock}
}

// refusedBy returns the label of a refusal.
func refusedBy(name contract.RefusalName) holdOutcome {
	for i, known := range holdNames {
		if known == name {
			return holdOutcome(i)
		}
	}
	return holdOther
}
