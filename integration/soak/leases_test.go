package soak_test

import (
	"errors"
	"fmt"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/duty/failpoint/control"
	"serve.zone/relay/escrow"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// leased are the nodes that something is held for: those behind the members of the hub.
const (
	firstLeased = members
	leasedNodes = 12
)

// leases are the renewals that the relay holds.
type leases struct {
	s         *soak
	authority *simulate.SigningAuthority
	slots     *slots
	events    uint64 // that were looked at
}

func newLeases(s *soak) *leases {
	return &leases{s: s, authority: simulate.NewSigningAuthority(1), slots: newSlots()}
}

// window is one of a run, from when it is handed over.
type window struct{ opens, ends time.Duration }

// The windows of a run: the first is open and ends soon, a little later the second opens,
// and a while later the third.
var runWindows = []window{
	{-3 * time.Minute, time.Minute}, {90 * time.Second, 12 * time.Minute}, {210 * time.Second, 14 * time.Minute},
}

// toGap and toSecond step the clock from the first window to where none is open, and from
// there into the second; back and again to a time before all of it and into the third.
const (
	toGap    = 75 * time.Second
	toSecond = 45 * time.Second
	back     = 10 * time.Minute
	again    = 12 * time.Minute
)

// nodes returns the numbers of the leased nodes.
func (l *leases) nodes() []int {
	var all []int
	for i := range leasedNodes {
		all = append(all, firstLeased+i)
	}
	return all
}

// hand gives the relay a run for a node, under a new projection, so that its windows need
// not extend those before. It returns the sequence of the first.
func (l *leases) hand(i int, windows []window) (int64, error) {
	id, p := nodeName(i), l.s.fleet.nodes[i]
	projection, err := l.s.Cloudly.Project(id)
	if err != nil {
		return 0, err
	}
	now := l.s.clock.now()
	at := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	projection.Authority = l.authority.Reference()
	projection.DNS = contract.DNSWindow{IssuedAt: at(-20 * time.Minute), NotBefore: at(-20 * time.Minute), ExpiresAt: at(-5 * time.Minute)}
	first := projection.Reference.Generation * 10
	run := contract.HoldDNSLeaseRenewalsRequest{NodeID: id, Projection: projection.Reference}
	for k, w := range windows {
		signed, err := l.authority.Sign(contract.DNSLeaseRenewal{
			Controller: projection.Scope.Controller, NodeID: id, RuntimeNamespace: projection.Scope.RuntimeNamespace,
			Projection: projection.Reference, Sequence: first + int64(k),
			DNS: contract.DNSWindow{IssuedAt: at(w.opens), NotBefore: at(w.opens), ExpiresAt: at(w.ends)},
		})
		if err != nil {
			return 0, err
		}
		run.Renewals = append(run.Renewals, signed)
		l.slots.hand(slot{id, first + int64(k)}, held{now.Add(w.opens), now.Add(w.ends)})
	}
	if _, err := l.s.Cloudly.Hold(l.s.Soon(), run); err != nil {
		return 0, err
	}
	p.Trust(l.authority.Authority)
	p.AdmitProjection(projection)
	return first, nil
}

// handAll hands over a run for each leased node, which is registered, and returns their
// first sequences.
func (l *leases) handAll(windows []window) map[int]int64 {
	l.s.t.Helper()
	firsts := map[int]int64{}
	for _, i := range l.nodes() {
		l.s.Eventually("a run for "+nodeName(i), func() error {
			first, err := l.hand(i, windows)
			firsts[i] = first
			return err
		})
	}
	return firsts
}

// sockets returns over which socket each leased node is registered.
func (l *leases) sockets() map[int]int {
	all := map[int]int{}
	for _, i := range l.nodes() {
		if socket, ok := l.s.fleet.nodes[i].Registered(); ok {
			all[i] = socket
		}
	}
	return all
}

// waitServed waits until each node whose socket stands still has taken its slot, and the
// relay knows.
func (l *leases) waitServed(firsts map[int]int64, k int, before map[int]int) {
	l.s.t.Helper()
	l.s.Eventually(fmt.Sprintf("slot %d at every node", k), func() error {
		l.fold()
		l.s.report(l.slots.faults())
		known := map[string]int64{}
		for _, n := range rig.SectionOf[escrow.Status](l.s.Rig, escrow.Name).Nodes {
			if n.Acknowledged != nil {
				known[n.ID] = n.Acknowledged.Sequence
			}
		}
		now := l.sockets()
		for i, socket := range before {
			x := slot{nodeName(i), firsts[i] + int64(k)}
			if now[i] == socket && (!l.slots.served(x) || known[x.node] != x.sequence) {
				return fmt.Errorf("%s has not taken %d", x.node, x.sequence)
			}
		}
		return nil
	})
}

// pushed is how many pushes the relay has counted.
func (l *leases) pushed() float64 {
	l.s.t.Helper()
	n, _ := l.s.Metrics().Value("relay_escrow_pushed_renewals_total")
	return n
}

// shown waits for something that the status of the escrow shows.
func (l *leases) shown(what string, holds func(escrow.Status) bool) {
	l.s.t.Helper()
	l.s.Eventually(what, func() error {
		if s := rig.SectionOf[escrow.Status](l.s.Rig, escrow.Name); !holds(s) {
			return fmt.Errorf("the status shows attached %t, suspect %t, %d pushes", s.Attached, s.ClockSuspect, s.PushesRunning)
		}
		return nil
	})
}

// fold takes over what has reached nodes, and then what the relay has said of it, which
// says of a release before it is made.
func (l *leases) fold() {
	l.s.t.Helper()
	l.slots.look()
	f := l.s.fleet
	for _, i := range l.nodes() {
		all := f.nodes[i].Judgements()
		for _, j := range all[f.folded[i]:] {
			// What was handed over under another projection, the moment before, is none of
			// the node's any more.
			if !errors.Is(j.Refusal, simulate.ErrRenewalProjection) {
				l.slots.arrived(arrival{slot{f.ids[i], j.Renewal.Sequence}, j.At, j.Refusal})
			}
		}
		f.folded[i] = len(all)
	}
	for _, e := range l.s.Events(l.events) {
		l.events = e.Seq + 1
		sequence, _ := e.Fields["sequence"].(float64)
		switch x := (slot{e.Text("node"), int64(sequence)}); e.Type {
		case "renewal-released":
			l.slots.release(x)
		case "renewal-acknowledged":
			l.slots.acknowledge(x)
		}
		if e.Type == string(escrow.CustodyDropped) {
			l.slots.drop() // what was handed over is folded before more is
		}
	}
}

// outage takes Cloudly away, and sees every node served once in each window that comes,
// and nothing released where no window is open or the clock is not to be trusted.
func (l *leases) outage(long bool) {
	s := l.s
	s.t.Helper()
	s.whole()
	firsts := l.handAll(runWindows)
	sockets, was := l.sockets(), s.cutting()
	s.Upstream.Outage()
	l.waitServed(firsts, 0, sockets)
	before := l.pushed()
	s.step(toGap)
	l.shown("a clock between two windows", func(x escrow.Status) bool {
		for _, n := range x.Nodes {
			if n.Current != nil {
				return false
			}
		}
		return !x.Attached
	})
	l.wantPushed(before, "where no window is open")
	s.step(toSecond)
	l.waitServed(firsts, 1, sockets)
	stepped := toGap + toSecond
	if long {
		before := l.pushed()
		s.step(-back)
		l.shown("a clock that is not trusted", func(x escrow.Status) bool { return x.ClockSuspect })
		l.wantPushed(before, "by a clock that was set back")
		s.step(again)
		l.waitServed(firsts, 2, sockets)
		stepped += again - back
	}
	s.back(was)
	s.step(-stepped)
}

// arrivals is how many renewals have reached leased nodes so far.
func (l *leases) arrivals() (n int) {
	for _, i := range l.nodes() {
		n += len(l.s.fleet.nodes[i].Judgements())
	}
	return n
}

// arrived is how many renewals had reached leased nodes at a time, of which some were held.
type arrived struct {
	number int
	inTime bool // they were let go before they would have gone on by themselves
}

// holdSome takes Cloudly away from a relay that holds runs of these windows, with some
// releases held between their decision and the push, and waits for the others. Release
// lets them go on, behind something that withdraws them.
func (l *leases) holdSome(windows []window) (came *arrived, release func()) {
	s := l.s
	s.t.Helper()
	l.handAll(windows)
	const some = leasedNodes / 4
	before := l.arrivals()
	times := s.hold(failpoint.RenewalDue, some)
	s.Upstream.Outage()
	s.reached(failpoint.RenewalDue, times+some)
	held := time.Now()
	s.Eventually("the other renewals at their nodes", func() error {
		if n, due := l.arrivals()-before, l.reachable()-some; n != due {
			return fmt.Errorf("%d of %d have come", n, due)
		}
		return nil
	})
	came = &arrived{number: l.arrivals()}
	return came, func() {
		s.t.Helper()
		came.inTime = time.Since(held) < control.MaximumWait/2
		s.release(failpoint.RenewalDue)
		l.shown("the end of all pushes", func(x escrow.Status) bool { return x.PushesRunning == 0 })
	}
}

// wantArrivals checks that no more renewals have reached nodes than had when some were
// held.
func (l *leases) wantArrivals(came *arrived, when string) {
	l.s.t.Helper()
	for _, i := range l.nodes() { // what was sent before has arrived in front of it
		l.s.Eventually("a push of Cloudly", func() error { return l.s.fleet.reach(i) })
	}
	if n := l.arrivals() - came.number; n != 0 && came.inTime {
		l.s.fault("escrow: %d renewals were released %s", n, when)
	}
}

// wantPushed checks that the relay has counted no more pushes than before.
func (l *leases) wantPushed(before float64, when string) {
	l.s.t.Helper()
	if now := l.pushed(); now != before {
		l.s.fault("escrow: %v renewals were pushed %s", now-before, when)
	}
}

// heldPushes holds some releases while something happens behind which none of them may
// leave any more. Done undoes it.
func (l *leases) heldPushes(windows []window, happens func(from uint64), done func()) {
	s := l.s
	s.t.Helper()
	s.whole()
	from, was := s.NextSeq(), s.cutting()
	came, release := l.holdSome(windows)
	happens(from)
	release()
	s.back(was)
	s.whole()
	l.wantArrivals(came, "that were to be withdrawn")
	done()
}

// reachable is how many nodes could be given something now.
func (l *leases) reachable() (n int) {
	for _, x := range rig.SectionOf[escrow.Status](l.s.Rig, escrow.Name).Nodes {
		if x.Reachable && x.Held > 0 {
			n++
		}
	}
	return n
}

// heldAndBack has Cloudly come back meanwhile.
func (l *leases) heldAndBack() {
	l.heldPushes(runWindows, func(uint64) {
		l.s.back(l.s.cutting())
		l.shown("the end of the release", func(x escrow.Status) bool { return x.Attached })
	}, func() {})
}

// heldAndSetBack has the clock be set back meanwhile, so that it is not to be trusted.
func (l *leases) heldAndSetBack() {
	l.heldPushes(runWindows, func(uint64) {
		l.s.step(-back)
		l.shown("a clock that is not trusted", func(x escrow.Status) bool { return x.ClockSuspect })
	}, func() { l.s.step(back) })
}

// heldAndEnded has the only window end meanwhile.
func (l *leases) heldAndEnded() {
	l.heldPushes(runWindows[:1], func(from uint64) {
		l.s.step(toGap)
		l.s.Eventually("the end of all windows", func() error {
			n := 0
			for _, e := range l.s.Events(from) {
				if e.Type == "renewals-coverage-ended" {
					n++
				}
			}
			if n != leasedNodes {
				return fmt.Errorf("%d have ended", n)
			}
			return nil
		})
	}, func() { l.s.step(-toGap) })
}
