package escrow

import (
	"slices"
	"strings"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// machine decides what may be pushed to whom (contract §9; design §4, O9, O36,
// §9.5). It has no goroutines, no I/O and no clock: every event comes with a
// reading of both. Its one effect is a push, which only tick returns; wake says
// when the next tick is due.
//
//	event       while a session stands                 while none does
//	registered  -                                      a session stands: bindings held before it are
//	                                                   unconfirmed, windows that ended go
//	lost        none stands: clocks are marked anew,   -
//	            bindings held become good for release
//	hold        judged; the node's run is replaced     refused escrow-cloudly-only
//	            or emptied
//	bound       the node's binding is replaced, and    the same; of the session to come, so good for
//	            its run goes if the scope is another   release only once that is lost
//	unbound     the node's binding goes                the same; its node cannot be served any more
//	suspend     -                                      no push begins for a while
//	drop        nothing is held; none stands           the same
//	drain       nothing is taken, no push begins, and  the same
//	            what is withdrawn is not waited for
//	tick        windows that ended go                  clocks are compared; what is due is pushed
//	ended       the push is over: acknowledged, or     the same
//	            due again later, or its binding is gone
//
// A push in flight is withdrawn by the event after which it would not be made any
// more, for good: nothing of it is sent from then on. It stays the node's one push
// until it has ended, and an acknowledgement that comes by then counts. That is waited
// for until another push is due to the node, custody ends, or the relay.
type machine struct {
	at       instant // of the last event
	clock    clock
	attached bool // a registered session to Cloudly stands
	draining bool
	resume   time.Duration // no push before: what suspend leaves behind
	nodes    map[string]*node
	held     int    // bytes of all runs
	flying   int    // pushes in flight
	outage   outage // that lasts, or was last
	told     []told // events to publish, in order
}

// node is what is known of one node.
type node struct {
	id  string
	run *run // nil while nothing is held

	bound     bool
	binding   Binding
	bindings  uint64 // how many there were: names the one held
	confirmed bool   // obtained from the session that stands, or stood last
	early     bool   // obtained from a session whose acceptance is not known here yet
	good      bool   // held when the session was lost last

	acknowledged []acknowledged // the last one first
	flight       *push          // nil while none is in flight
	try          try
	shown        shown
}

// acknowledged is the highest sequence that a node acknowledged of one projection.
type acknowledged struct {
	of reference
	at time.Time
}

// try is how often the renewal that is current was pushed under one binding.
type try struct {
	target target
	pushed int
	next   time.Duration // not before, monotonic
}

// shown is what the status tells of a node besides.
type shown struct {
	released, acknowledged Delivery
	outcome                outcome
	any                    bool      // outcome is one
	gone                   time.Time // when its binding went; zero while it has one, or never had
	unreachable            bool      // an event told so since
}

// outage is the time without a session.
type outage struct {
	since        instant
	acknowledged int
	any          bool // something was held when it began
}

// told is an event to be published.
type told struct {
	event  duty.EventType
	fields []field.Field
}

func newMachine(at instant) *machine {
	m := &machine{at: at, nodes: map[string]*node{}}
	m.clock.mark(at)
	return m
}

func (m *machine) tell(event duty.EventType, fields ...field.Field) {
	m.told = append(m.told, told{event, fields})
}

// look begins an event.
func (m *machine) look(at instant) {
	m.at = at
	if m.attached {
		m.clock.mark(at) // Cloudly establishes order
		m.prune()
		return
	}
	before := m.clock.suspect
	m.clock.see(at)
	switch {
	case m.clock.suspect && !before:
		m.tell(ClockSuspect, field.Expires(m.clock.trusted))
	case before && !m.clock.suspect:
		m.tell(ClockTrusted, field.Reason("caught-up"))
	}
}

// settle ends an event: what may not be in flight any more is withdrawn.
func (m *machine) settle() {
	if m.flying == 0 {
		return
	}
	for _, n := range m.nodes {
		if n.flight != nil {
			m.review(n)
		}
	}
}

// registered tells that Cloudly accepted a registration. One that is repeated
// while the session stands changes nothing.
func (m *machine) registered(at instant) {
	defer m.settle()
	if m.look(at); m.attached {
		return
	}
	if m.clock.suspect {
		m.tell(ClockTrusted, field.Reason("session-registered"))
	}
	if m.outage.any {
		m.tell(ReleaseEnded, field.Count(m.outage.acknowledged), field.Duration(at.mono-m.outage.since.mono))
	}
	m.attached, m.resume, m.outage = true, 0, outage{}
	for _, n := range m.nodes {
		n.confirmed = n.confirmed && n.early
		n.early = false
		if n.run == nil && n.shown.unreachable { // it was remembered to be shown
			n.shown.unreachable = false
			m.forget(n)
		}
	}
	m.clock.mark(at)
	m.prune()
}

// lost tells that the session is gone.
func (m *machine) lost(at instant) {
	defer m.settle()
	if m.look(at); !m.attached {
		m.resume = 0
		return
	}
	m.attached = false
	m.outage = outage{since: at}
	var reachable int
	var first time.Time // end of the coverage that ends first
	for _, n := range m.sorted() {
		n.good = n.bound
		if n.run == nil {
			continue
		}
		m.outage.any = true
		if end := time.UnixMilli(n.run.end()); first.IsZero() || end.Before(first) {
			first = end
		}
		if n.bound {
			reachable++
		} else {
			m.tellUnreachable(n, "no-session")
		}
	}
	if m.outage.any {
		m.tell(ReleaseBegun, field.Count(reachable), field.Expires(first))
	}
}

// bound tells what a node obtained. A run of another scope than the session's goes
// (contract §9.6).
func (m *machine) bound(at instant, b Binding) {
	defer m.settle()
	m.look(at)
	n := m.nodes[b.NodeID]
	if n == nil {
		m.makeRoom()
		n = &node{id: b.NodeID}
		m.nodes[b.NodeID] = n
	}
	n.bound, n.binding, n.confirmed = true, b, b.Confirmed
	n.bindings++
	n.early = b.Confirmed && !m.attached
	n.good = false
	n.shown.gone, n.shown.unreachable = time.Time{}, false
	if n.run != nil && !n.run.scope.Equal(b.Session.Scope) {
		m.tell(RunDropped, field.Node(n.id), field.Reason("scope-changed"), field.Count(len(n.run.renewals)))
		m.setRun(n, nil)
	}
}

// unbound tells that a node has no binding any more.
func (m *machine) unbound(at instant, nodeID string) {
	defer m.settle()
	m.look(at)
	if n := m.nodes[nodeID]; n != nil {
		m.unbind(n)
		m.forget(n)
	}
}

func (m *machine) unbind(n *node) {
	if !n.bound {
		return
	}
	n.bound, n.binding, n.confirmed, n.early, n.good = false, Binding{}, false, false, false
	n.shown.gone = m.at.wall
	if !m.attached && !m.suspended() && !m.draining {
		m.tellUnreachable(n, "socket-ended")
	}
}

// tellUnreachable tells, once for each binding that went, that a node cannot be
// given anything before Cloudly is back, neither what is held for it nor a session.
func (m *machine) tellUnreachable(n *node, reason string) {
	if n.shown.unreachable {
		return
	}
	n.shown.unreachable = true
	if n.run == nil {
		m.tell(NodeUnreachable, field.Node(n.id), field.Reason(reason))
		return
	}
	m.tell(NodeUnreachable, field.Node(n.id), field.Reason(reason), field.Expires(time.UnixMilli(n.run.end())))
}

// suspend holds pushes back: custody may be about to end.
func (m *machine) suspend(at instant) {
	defer m.settle()
	if m.look(at); !m.attached {
		m.resume = at.mono + suspendWait
	}
}

func (m *machine) suspended() bool { return m.at.mono < m.resume }

// drop ends custody: nothing is held, whose outcome of what is in flight
// included. why names the cause.
func (m *machine) drop(at instant, why string) {
	m.look(at)
	if runs, _ := m.counts(); runs > 0 {
		m.tell(CustodyDropped, field.Count(runs), field.Reason(why))
	}
	for _, n := range m.nodes {
		if n.flight != nil {
			n.flight.withdrawn = true
			n.flight.over = true
		}
	}
	m.nodes = map[string]*node{}
	m.attached, m.resume, m.held, m.flying, m.outage = false, 0, 0, 0, outage{}
	m.clock.mark(at)
}

// drain tells that the relay is about to end.
func (m *machine) drain(at instant) {
	defer m.settle()
	m.look(at)
	m.draining = true
}

// prune lets windows go that have ended. It is called only under a session: while
// there is none they are skipped, since the clock may be wrong (design §4, O36).
func (m *machine) prune() {
	ms := milliseconds(m.at.wall)
	for _, n := range m.nodes {
		switch {
		case n.run == nil:
		case n.run.left(ms) == 0:
			m.setRun(n, nil)
			m.forget(n)
		default:
			n.run.renewals = n.run.renewals[len(n.run.renewals)-n.run.left(ms):]
		}
	}
}

// setRun replaces what is held for a node; nil for nothing.
func (m *machine) setRun(n *node, r *run) {
	if n.run != nil {
		m.held -= n.run.bytes
	}
	if n.run = r; r != nil {
		m.held += r.bytes
	}
}

// counts returns how many runs are held, and how many renewals whose window has
// not ended.
func (m *machine) counts() (runs, renewals int) {
	ms := milliseconds(m.at.wall)
	for _, n := range m.nodes {
		if n.run != nil {
			runs++
			renewals += n.run.left(ms)
		}
	}
	return runs, renewals
}

// forget drops the record of a node of which nothing is left to know.
func (m *machine) forget(n *node) {
	if n.idle() && len(n.acknowledged) == 0 {
		delete(m.nodes, n.id)
	}
}

// idle reports whether nothing is known of a node but what it acknowledged.
func (n *node) idle() bool {
	return !n.bound && n.run == nil && n.flight == nil && !n.shown.unreachable
}

// makeRoom forgets, of the nodes of which nothing is known but what they
// acknowledged, the one that did so longest ago, when there are too many.
func (m *machine) makeRoom() {
	if len(m.nodes) < maximumRecords {
		return
	}
	var oldest *node
	for _, n := range m.nodes {
		if n.idle() && (oldest == nil || n.acknowledged[0].at.Before(oldest.acknowledged[0].at)) {
			oldest = n
		}
	}
	if oldest != nil {
		delete(m.nodes, oldest.id)
	}
}

// sorted returns the nodes in the order of their ids.
func (m *machine) sorted() []*node {
	all := make([]*node, 0, len(m.nodes))
	for _, n := range m.nodes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *node) int { return strings.Compare(a.id, b.id) })
	return all
}
