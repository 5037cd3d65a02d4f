package soak_test

import (
	"math/rand/v2"
	"slices"

	"serve.zone/relay/duty/failpoint"
)

// event is one thing that happens to the relay. When it returns, nothing of it goes on by
// itself: nobody is held, nothing is stalled, Cloudly can be reached.
type event struct {
	name  string
	do    func(*soak)
	holds failpoint.Name // where it has somebody wait, "" for nowhere
	slow  bool           // it takes seconds: a short soak leaves it out
}

// deck draws events in a random order, each as often as the others.
type deck struct {
	random *rand.Rand
	all    []event
	left   []event
}

func newDeck(random *rand.Rand, long bool) *deck {
	d := &deck{random: random}
	for _, e := range events {
		if long || !e.slow {
			d.all = append(d.all, e)
		}
	}
	return d
}

func (d *deck) draw() event {
	if len(d.left) == 0 {
		d.left = append(d.left, d.all...)
		d.random.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	e := d.left[len(d.left)-1]
	d.left = d.left[:len(d.left)-1]
	return e
}

// The events, by what they happen to. Their order means nothing to a soak.
var (
	sessionEvents = []event{
		{name: "cloudly-cut", do: func(s *soak) { s.lose(func() { s.Upstream.Cut() }) }},
		{name: "cloudly-away", do: (*soak).cloudlyAway},
		{name: "cloudly-stalls", do: (*soak).cloudlyStalls},
		{name: "cloudly-torn", do: (*soak).cloudlyTorn},
		{name: "cloudly-refuses-and-dies", do: (*soak).cloudlyOdd},
		{name: "cloudly-hangs", do: (*soak).cloudlyHangs, slow: true},
		{name: "answer-to-registration-lost", do: (*soak).answerLost},
		{name: "registration-answered-and-cut", do: (*soak).registrationAnswered, holds: failpoint.RegistrationAnswered},
		{name: "loss-held", do: (*soak).lossHeld, holds: failpoint.LossSeen},
		{name: "node-requests-held", do: (*soak).nodeRequestsHeld, holds: failpoint.NodeRequestRead},
		{name: "cloudly-requests-held", do: (*soak).cloudlyRequestsHeld, holds: failpoint.CloudlyRequestRead},
	}
	nodeEvents = []event{
		{name: "nodes-cut", do: (*soak).nodesCut},
		{name: "nodes-torn", do: (*soak).nodesTorn},
		{name: "nodes-restart", do: (*soak).nodesRestart},
		{name: "nodes-stall", do: (*soak).nodesStall},
		{name: "relay-stalls-to-nodes", do: (*soak).relayStalls},
		{name: "certificate-replaced", do: (*soak).certificate},
		{name: "reload", do: (*soak).reload},
		{name: "clock-set", do: (*soak).clockSet},
		{name: "ingress", do: (*soak).ingressMoves},
	}
	escrowEvents = []event{
		{name: "outage", do: func(s *soak) { s.leases.outage(false) }},
		{name: "outage-over-three-windows", do: func(s *soak) { s.leases.outage(true) }, slow: true},
		{name: "renewals-held-and-cloudly-back", do: func(s *soak) { s.leases.heldAndBack() }, holds: failpoint.RenewalDue, slow: true},
		{name: "renewals-held-and-clock-set-back", do: func(s *soak) { s.leases.heldAndSetBack() }, holds: failpoint.RenewalDue, slow: true},
		{name: "renewals-held-and-window-ended", do: func(s *soak) { s.leases.heldAndEnded() }, holds: failpoint.RenewalDue, slow: true},
	}
	hubEvents = []event{
		{name: "grants-change", do: func(s *soak) { s.tunnel.grantsChange() }},
		{name: "member-replaced", do: func(s *soak) { s.tunnel.replaced() }},
		{name: "member-restarts", do: func(s *soak) { s.tunnel.restarts() }},
		{name: "network-compiled-and-held", do: func(s *soak) { s.tunnel.heldCompiled() }, holds: failpoint.NetworkCompiled},
		{name: "network-in-force-and-held", do: func(s *soak) { s.tunnel.heldInForce() }, holds: failpoint.NetworkInForce},
		{name: "network-fenced-and-held", do: func(s *soak) { s.tunnel.heldFenced() }, holds: failpoint.NetworkFenced},
		{name: "member-confirmed-and-withdrawn", do: func(s *soak) { s.tunnel.heldConfirmed() }, holds: failpoint.MemberConfirmed},
		{name: "credential-expires", do: func(s *soak) { s.tunnel.expires() }, slow: true},
	}
	events = slices.Concat(sessionEvents, nodeEvents, escrowEvents, hubEvents, custodyEvents)
)

// small does something quick to nodes or operator, also while Cloudly is away.
func (s *soak) small() {
	s.t.Helper()
	all := []func(*soak){(*soak).nodesCut, (*soak).nodesTorn, (*soak).nodesRestart, (*soak).nodesStall, (*soak).certificate, (*soak).reload}
	all[s.random.IntN(len(all))](s)
}
