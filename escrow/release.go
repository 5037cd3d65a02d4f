package escrow

import (
	"slices"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
)

// reference names one renewal of one projection.
type reference = contract.DNSLeaseRenewalReference

// target is what a push aims at: one renewal, under one binding.
type target struct {
	renewal reference
	binding uint64 // node.bindings
}

// push is the one effect of the machine: give a renewal to a node under the binding
// that it obtained. But for withdrawn and over it never changes.
type push struct {
	node    string
	binding Binding
	target  target
	signed  contract.Raw // the record as it came
	pushed  int          // how often this renewal was pushed under this binding, from 1

	withdrawn bool // it would not be made any more: nothing of it is to be sent
	over      bool // nor is its answer waited for
}

// outcome is how a push ended.
type outcome uint8

const (
	outcomeAcknowledged outcome = iota // the answer is bound to the renewal
	outcomeRefused                     // the node answered with an error
	outcomeForeign                     // the answer is not bound to the renewal
	outcomeFailed                      // no answer came, or none that could be read
	outcomeSocketEnded                 // the socket of the binding has ended
	outcomeWithdrawn                   // the machine withdrew it, and no answer came
	outcomes
)

func (o outcome) String() string {
	return [outcomes]string{
		outcomeAcknowledged: "acknowledged", outcomeRefused: "refused", outcomeForeign: "answer-foreign",
		outcomeFailed: "unanswered", outcomeSocketEnded: "socket-ended", outcomeWithdrawn: "withdrawn",
	}[o]
}

// tick returns what is to be pushed now, in the order of node ids.
func (m *machine) tick(at instant) []*push {
	defer m.settle()
	m.look(at)
	if m.attached || m.draining {
		return nil
	}
	var due []*push
	for _, n := range m.sorted() {
		m.tellEnd(n)
		if p := m.due(n); p != nil {
			n.flight = p
			m.flying++
			due = append(due, p)
		}
	}
	return due
}

// releases reports whether anything may be pushed at all.
func (m *machine) releases() bool { return !m.attached && !m.clock.suspect && !m.suspended() }

// candidate returns what a node may be given now, whether or not it is time to try
// again. A lower sequence than the highest that is current never is one, nor one
// that is not above what the node acknowledged of the projection.
func (m *machine) candidate(n *node) (renewal, target, bool) {
	if !m.releases() || n.run == nil || !n.bound || !n.good {
		return renewal{}, target{}, false
	}
	x, ok := n.run.current(milliseconds(m.at.wall))
	if !ok || x.sequence <= n.acknowledgedOf(n.run.projection) {
		return renewal{}, target{}, false
	}
	return x, target{n.run.reference(x), n.bindings}, true
}

// due returns the push that a node is to be given now, nil for none.
func (m *machine) due(n *node) *push {
	x, to, ok := m.candidate(n)
	if !ok || n.flight != nil {
		return nil
	}
	if n.try.target != to {
		n.try = try{target: to}
	}
	if n.try.next > m.at.mono {
		return nil
	}
	n.try.pushed++
	n.shown.released = Delivery{Sequence: x.sequence, At: m.at.wall}
	if n.try.pushed == 1 {
		m.tell(RenewalReleased, field.Node(n.id), field.Sequence(x.sequence), field.Expires(time.UnixMilli(x.expiresAt)))
	}
	return &push{node: n.id, binding: n.binding, target: to, signed: x.signed, pushed: n.try.pushed}
}

// review withdraws the push in flight if it would not be made any more.
//
// Its answer is waited for all the same, as long as any (pushWait). No text bounds an
// acknowledgement by the session: one that is bound to the renewal counts as delivered
// (contract §9.5), and says that the node has it durably, whoever is there by then.
// Counted, it only ever keeps a push back, in an outage that follows. The wait is over
// when it stands in the way of a push that is due now, and when no outage can follow.
func (m *machine) review(n *node) {
	_, to, due := m.candidate(n)
	if due && to == n.flight.target {
		return // also if it was withdrawn meanwhile: what was sent decides
	}
	n.flight.withdrawn = true
	n.flight.over = n.flight.over || due || m.draining
}

// ended tells how a push ended. What a node acknowledged counts whether or not a
// session stands by now; what is from before an end of custody means nothing.
func (m *machine) ended(at instant, p *push, how outcome) (counted outcome) {
	defer m.settle()
	m.look(at)
	if p.withdrawn && how == outcomeFailed {
		how = outcomeWithdrawn
	}
	n := m.nodes[p.node]
	if n == nil || n.flight != p {
		return how
	}
	n.flight = nil
	m.flying--
	n.shown.outcome, n.shown.any = how, true
	switch how {
	case outcomeAcknowledged:
		m.acknowledge(n, p)
	case outcomeSocketEnded:
		if n.bindings == p.target.binding {
			m.unbind(n)
		}
	case outcomeWithdrawn:
		// It counts for nothing: due at once, should it be due again.
		n.try.pushed--
	default:
		if p.pushed == 1 && !p.withdrawn { // which is not pushed again
			m.tell(RenewalNotTaken, field.Node(n.id), field.Sequence(p.target.renewal.Sequence), field.Outcome(how.String()))
		}
		n.try.next = at.mono + retryAfter(n.try.pushed)
	}
	m.forget(n)
	return how
}

// acknowledge takes over that a node has a renewal.
func (m *machine) acknowledge(n *node, p *push) {
	if !m.attached {
		m.outage.acknowledged++
	}
	n.shown.acknowledged = Delivery{Sequence: p.target.renewal.Sequence, At: m.at.wall}
	m.tell(RenewalAcknowledged, field.Node(n.id), field.Sequence(p.target.renewal.Sequence), field.Attempt(p.pushed))
	a := acknowledged{p.target.renewal, m.at.wall}
	// What it replaces is lower, or the push would not have been made.
	n.acknowledged = slices.DeleteFunc(n.acknowledged, func(x acknowledged) bool { return x.of.Projection == a.of.Projection })
	n.acknowledged = slices.Insert(n.acknowledged, 0, a)
	n.acknowledged = n.acknowledged[:min(len(n.acknowledged), rememberedProjections)]
}

// acknowledgedOf returns the highest sequence that the node acknowledged of a
// projection, 0 for none: sequences begin at 1.
func (n *node) acknowledgedOf(projection contract.Reference) int64 {
	for _, a := range n.acknowledged {
		if a.of.Projection == projection {
			return a.of.Sequence
		}
	}
	return 0
}

// tellEnd tells once that a node's last window has ended without a session.
func (m *machine) tellEnd(n *node) {
	if n.run != nil && !n.run.endTold && !m.clock.suspect && n.run.end() <= milliseconds(m.at.wall) {
		n.run.endTold = true
		m.tell(CoverageEnded, field.Node(n.id), field.Expires(time.UnixMilli(n.run.end())))
	}
}

// wake returns when the next tick is due, in monotonic time, and false when none
// is before another event.
func (m *machine) wake() (time.Duration, bool) {
	at := m.at.mono + longestSleep
	awaited := false
	sooner := func(t time.Duration) { at, awaited = min(at, t), true }
	until := func(ms int64) { sooner(m.at.mono + min(time.UnixMilli(ms).Sub(m.at.wall), longestSleep)) }
	ms := milliseconds(m.at.wall)
	for _, n := range m.nodes {
		if n.run == nil {
			continue
		}
		if m.attached {
			until(n.run.renewals[0].expiresAt) // it goes then
			continue
		}
		sooner(m.at.mono + clockCheck)
		if opens, ok := n.run.next(ms); ok {
			until(opens)
		}
		if x, to, ok := m.candidate(n); ok {
			until(x.expiresAt)
			if n.try.target == to && n.try.next > m.at.mono {
				sooner(n.try.next)
			}
		}
	}
	if awaited && !m.attached && m.suspended() {
		sooner(m.resume)
	}
	if awaited && m.clock.suspect {
		sooner(m.at.mono + min(m.clock.trusted.Sub(m.at.wall), longestSleep))
	}
	return at, awaited && !m.draining
}
