package soak_test

import (
	"fmt"
	"time"

	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/hub/node"
)

// changeGrant adds or withdraws a grant between two members, the herald's apart.
func (t *tunnel) changeGrant() {
	from, to := 1+t.s.random.IntN(members-2), 1+t.s.random.IntN(members-2)
	if from == to {
		to = from%(members-2) + 1
	}
	g := [2]int{from, to}
	t.grants[g] = !t.grants[g]
}

// restore brings the grants back that transfers need.
func (t *tunnel) restore() {
	for _, pair := range pairs {
		t.grants[pair], t.grants[[2]int{pair[1], pair[0]}] = true, true
	}
}

// grantsChange adds and withdraws grants, in a row of networks, in the middle of
// transfers.
func (t *tunnel) grantsChange() {
	t.s.t.Helper()
	for range 3 {
		for range 1 + t.s.random.IntN(4) {
			t.changeGrant()
		}
		t.settle()
		t.fence()
	}
	t.restore()
	t.settle()
}

// victim is a member to whom something is done.
func (t *tunnel) victim() int { return 1 + t.s.random.IntN(members-2) }

// replaced has a member be withdrawn, and come back with another key.
func (t *tunnel) replaced() {
	t.s.t.Helper()
	n := t.victim()
	t.absent[n] = true
	t.settle()
	t.fence()
	e := t.at(n)
	t.s.Eventually("the end of a member that was withdrawn", func() error {
		if c := e.client.Status(); c.Endings[node.HubNotAdmitted] == 0 {
			return fmt.Errorf("its client is %s, its last end %+v", c.State, c.Last)
		}
		return nil
	})
	t.leave(n)
	t.rekey(n)
	delete(t.absent, n)
	t.settle()
	t.join(n)
}

// restarts has a member's client begin anew.
func (t *tunnel) restarts() {
	t.s.t.Helper()
	n := t.victim()
	t.leave(n)
	t.join(n)
}

// heldCompiled loses Cloudly, or a member, while a network was compiled and is not in
// force. What was answered for it, or is pulled later, decides.
func (t *tunnel) heldCompiled() {
	s := t.s
	s.t.Helper()
	times := s.hold(failpoint.NetworkCompiled, 1)
	t.changeGrant()
	first := t.push()
	s.reached(failpoint.NetworkCompiled, times+1)
	t.changeGrant()
	second := t.push() // waits behind it
	was, cut := s.cutting(), s.random.IntN(2) == 0
	if cut {
		s.Upstream.Cut()
	} else {
		t.restarts()
	}
	s.pause(0, 200*time.Millisecond)
	s.release(failpoint.NetworkCompiled)
	if cut {
		s.back(was)
	}
	<-first.over
	<-second.over
	t.restore()
	t.settle()
	t.fence()
}

// heldInForce has the network after next come while one is in force, and QUIC may hold
// what it forbids.
func (t *tunnel) heldInForce() {
	s := t.s
	s.t.Helper()
	times := s.hold(failpoint.NetworkInForce, 1)
	g := [2]int{5, 6}
	t.grants[g] = false
	first := t.push()
	s.reached(failpoint.NetworkInForce, times+1)
	t.grants[g] = true
	second := t.push()
	was, cut := s.cutting(), s.random.IntN(2) == 0
	if cut {
		s.Upstream.Cut()
	}
	s.pause(0, 200*time.Millisecond)
	s.release(failpoint.NetworkInForce)
	if cut {
		s.back(was)
	}
	<-first.over
	<-second.over
	t.settle()
	t.fence()
}

// heldFenced has a member be withdrawn and admitted again while what QUIC may hold of the
// first network is waited for.
func (t *tunnel) heldFenced() {
	s := t.s
	s.t.Helper()
	n := t.victim()
	times := s.hold(failpoint.NetworkFenced, 1)
	t.absent[n] = true
	first := t.push()
	s.reached(failpoint.NetworkFenced, times+1)
	delete(t.absent, n)
	second := t.push()
	t.leave(n)
	t.join(n)
	s.pause(0, 200*time.Millisecond)
	s.release(failpoint.NetworkFenced)
	<-first.over
	<-second.over
	t.settle()
	t.fence()
}

// heldConfirmed withdraws a member between the confirmation of its handshake and the
// moment in which it takes its place: it must not.
func (t *tunnel) heldConfirmed() {
	s := t.s
	s.t.Helper()
	n := t.victim()
	t.leave(n)
	times := s.hold(failpoint.MemberConfirmed, 1)
	e := t.join(n)
	s.reached(failpoint.MemberConfirmed, times+1)
	t.absent[n] = true
	t.settle()
	s.release(failpoint.MemberConfirmed)
	s.Eventually("the refusal of a member that was withdrawn", func() error {
		c := e.client.Status()
		if c.Last == nil {
			return fmt.Errorf("its client is %s", c.State)
		}
		if c.Last.Reason != node.HubNotAdmitted {
			s.fault("hub: a member that was withdrawn while it confirmed ended with %s", c.Last.Reason)
		}
		return nil
	})
	t.leave(n)
	delete(t.absent, n)
	t.settle()
	t.join(n)
}

// expires sets the clock beyond the end of a credential, and back: no packet of the
// member passes meanwhile.
func (t *tunnel) expires() {
	s := t.s
	s.t.Helper()
	t.expired[mortal] = true
	number := t.laws.begin(t.law())
	s.step(pastMortal)
	t.laws.settle(number)
	t.fence()
	s.pause(300*time.Millisecond, 800*time.Millisecond)
	delete(t.expired, mortal)
	t.laws.begin(t.law())
	s.step(-pastMortal)
	t.settle()
	t.leave(mortal)
	t.join(mortal)
}
