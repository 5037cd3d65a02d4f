package soak_test

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/escrow"
	"serve.zone/relay/forward"
	"serve.zone/relay/hub"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/ingress"
	"serve.zone/relay/integration/rig"
)

// custodyEvents are the ends of custody (contract §6.1): by each name while a session
// stands, and on the way back from an outage.
var custodyEvents = func() []event {
	var all []event
	for _, end := range rig.CustodyEnds() {
		all = append(all, event{name: "custody-ends-" + string(end.Name), do: func(s *soak) { s.custodyEnds(end) }, slow: true})
	}
	return append(all, event{name: "custody-ends-on-the-way-back", do: (*soak).custodyEndsOnTheWayBack, holds: failpoint.RenewalDue, slow: true})
}()

// custodyEnds has Cloudly say that this relay is no longer the relay while its session
// stands and everybody works, and gives custody back.
func (s *soak) custodyEnds(end rig.CustodyEnd) {
	s.t.Helper()
	c := s.custody(end)
	s.leases.handAll(runWindows)
	c.begin()
	end.Give(s.Rig)
	if !end.Fenced { // or what nodes report meets it
		s.RegisterAgain()
	}
	c.ended()
	c.gap()
	c.givenBack()
}

// custodyEndsOnTheWayBack has the first that Cloudly says behind an outage be that this
// relay is no longer the relay. Windows are open, and some releases are held between
// their decision and the push: none of them may leave any more.
func (s *soak) custodyEndsOnTheWayBack() {
	s.t.Helper()
	ends := slices.DeleteFunc(rig.CustodyEnds(), func(e rig.CustodyEnd) bool { return e.Fenced || e.Brief })
	end := ends[s.random.IntN(len(ends))]
	c := s.custody(end)
	came, release := s.leases.holdSome(runWindows)
	c.begin()
	end.Give(s.Rig)
	s.must(s.Upstream.Resume())
	s.Signal(syscall.SIGHUP)
	c.ended()
	release()
	c.gap()
	c.givenBack()
	s.leases.wantArrivals(came, "behind the end of custody")
}

// custody is one end of custody.
type custody struct {
	s        *soak
	end      rig.CustodyEnd
	from     uint64          // events before it are none of its
	law      int             // that nothing passes
	endings  [members]uint64 // of clients whose key the hub did not admit, before
	accepted uint64          // registrations, before
	pushed   float64         // renewals, when custody had ended
}

// custody has everything be there that is to be dropped.
func (s *soak) custody(end rig.CustodyEnd) *custody {
	s.t.Helper()
	s.whole()
	s.tunnel.up()
	return &custody{s: s, end: end}
}

// begin is called before Cloudly says so.
func (c *custody) begin() {
	c.s.t.Helper()
	c.s.leases.fold() // what is folded later is judged as behind the end where it is
	c.from = c.s.NextSeq()
	c.accepted = rig.SectionOf[cloudly.Status](c.s.Rig, cloudly.Name).AcceptedRegistrations
	for n := range members {
		c.endings[n] = c.s.tunnel.at(n).client.Status().Endings[node.HubNotAdmitted]
	}
	if socket, ok := c.s.Cloudly.Registered(); ok {
		c.s.broken[socket]++
	}
	c.law = c.s.tunnel.laws.begin(law{})
	if c.end.Brief { // who is back by itself pulls the network at once
		c.s.tunnel.laws.begin(c.s.tunnel.law())
	}
}

// ended waits until the relay has said that custody ended, by this name, which it does
// when everything was dropped; and holds it to that.
func (c *custody) ended() {
	s := c.s
	s.t.Helper()
	told := s.WaitEvent(string(cloudly.EventCustodyEnded), c.from)
	s.tunnel.laws.settle(c.law)
	if name := told.Text("refusal"); name != string(c.end.Name) {
		s.fault("custody: it ended by %s, want %s", name, c.end.Name)
	}
	for _, drop := range []string{string(escrow.CustodyDropped), string(hub.CustodyEnded)} {
		if reason := s.WaitEvent(drop, c.from).Text("reason"); reason != string(c.end.Name) {
			s.fault("custody: %s is for %s, want %s", drop, reason, c.end.Name)
		}
	}
	if !c.end.Brief {
		c.wantNothing("when custody has ended")
	}
	s.Eventually("the end of every member's session", func() error {
		for n := range members {
			if x := s.tunnel.at(n).client.Status(); x.Endings[node.HubNotAdmitted] == c.endings[n] {
				return fmt.Errorf("%s is %s, its last end %+v", nodeName(n), x.State, x.Last)
			}
		}
		return nil
	})
	c.pushed = s.leases.pushed()
	s.leases.fold()
}

// wantNothing checks that the relay holds nothing and carries nobody.
func (c *custody) wantNothing(when string) {
	c.s.t.Helper()
	if err := c.s.held(); err != nil {
		c.s.fault("custody: %s, %v", when, err)
	}
}

// held tells what the relay still holds of the cluster.
func (s *soak) held() error {
	s.t.Helper()
	var found []error
	say := func(what string, held bool, x any) {
		if held {
			found = append(found, fmt.Errorf("%s shows %+v", what, x))
		}
	}
	session := rig.SectionOf[cloudly.Status](s.Rig, cloudly.Name)
	say("the session", session.Registered || session.Origin != "" || session.AcceptedRegistration != nil, session)
	nodes := rig.SectionOf[forward.Status](s.Rig, forward.Name)
	say("the carriage", nodes.Attached || len(nodes.Nodes) > 0, nodes)
	runs := rig.SectionOf[escrow.Status](s.Rig, escrow.Name)
	say("the escrow", runs.Attached || runs.Runs+runs.Renewals+runs.HeldBytes+runs.PushesRunning+len(runs.Nodes) > 0, runs)
	network := rig.SectionOf[hub.Status](s.Rig, hub.Name)
	say("the hub", network.Attached || network.Network != nil || len(network.Members) > 0, network)
	table := rig.SectionOf[ingress.Status](s.Rig, ingress.Name)
	say("the ingress duty", table.Attached || table.Table != nil || len(table.Ingresses) > 0, table)
	return errors.Join(found...)
}

// gap lets time pass in which nobody has custody, and everybody goes on.
func (c *custody) gap() {
	s := c.s
	s.t.Helper()
	if c.end.Brief {
		return
	}
	passed := s.relayed()
	s.small()
	s.pause(100*time.Millisecond, 600*time.Millisecond)
	c.wantNothing("a while later")
	if _, ok := s.edge.ingress.Registered(); ok {
		s.fault("custody: an ingress is registered without it")
	}
	if n := s.relayed() - passed; n != 0 {
		s.fault("custody: the hub relayed %v packets without it", n)
	}
	s.leases.wantPushed(c.pushed, "without custody")
}

// relayed is how many packets the hub has handed to the tunnels of members.
func (s *soak) relayed() float64 {
	s.t.Helper()
	n, _ := s.Metrics().Value("relay_hub_relayed_packets_total")
	return n
}

// givenBack gives custody back, and sees the fleet come back whole, with nothing of
// before: an outage finds nothing to release.
func (c *custody) givenBack() {
	s := c.s
	s.t.Helper()
	if !c.end.Brief {
		s.tunnel.laws.begin(s.tunnel.law()) // the relay pulls it
	}
	c.end.Restore(s.Rig)
	next := time.Now().Add(time.Second / 4)
	s.Eventually("a registration that is accepted again", func() error {
		if time.Now().After(next) { // a wait from earlier losses gives way to it
			s.Signal(syscall.SIGHUP)
			next = time.Now().Add(time.Second / 4)
		}
		x := rig.SectionOf[cloudly.Status](s.Rig, cloudly.Name)
		if _, ok := s.Cloudly.Registered(); !ok || !x.Registered || x.AcceptedRegistrations == c.accepted {
			return fmt.Errorf("cloudly has it: %t; the relay is %s, its last trouble %q", ok, x.State, x.LastTrouble)
		}
		return nil
	})
	if c.end.Brief { // it may have read the document in between
		s.Configure(nil)
	}
	s.whole()
	// All that was sent to a node over its former socket has come by now.
	s.leases.fold()
	s.leases.slots.fence()
	s.outageOfNothing()
	s.leases.wantPushed(c.pushed, "of what was dropped")

	s.tunnel.rejoin()
	s.edge.ingress.Restart() // so that it does not wait for as long as it was told
	s.whole()
	s.leases.handAll(runWindows)
}

// outageOfNothing takes Cloudly away from a relay that holds no renewals.
func (s *soak) outageOfNothing() {
	s.t.Helper()
	if x := rig.SectionOf[escrow.Status](s.Rig, escrow.Name); x.Runs+x.Renewals+x.HeldBytes > 0 {
		s.fault("custody: it is back, and so are %d runs", x.Runs)
	}
	s.lose(func() {
		s.Upstream.Outage()
		s.leases.shown("an outage", func(x escrow.Status) bool { return !x.Attached })
		s.pause(50*time.Millisecond, 200*time.Millisecond)
	})
}
