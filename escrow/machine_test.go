package escrow

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
)

// after is a reading of both clocks, neither of which was set.
func after(d time.Duration) instant { return instant{begin.Add(d), d} }

// holding is a machine under a session, with a run of three slots for node-a.
func holding(t *testing.T) *machine {
	t.Helper()
	m := newMachine(after(0))
	m.registered(after(0))
	m.takes(t, spec{}, 0)
	return m
}

// takes has node-a register, and a run held for it.
func (m *machine) takes(t *testing.T, s spec, at time.Duration) {
	t.Helper()
	m.bound(after(at), bindingOf("node-a", 1))
	s.unsealed = true
	if _, refused := m.hold(after(at), grid(s, begin, 3), nil); refused != nil {
		t.Fatal(refused)
	}
}

// one returns the one push that is due.
func (m *machine) one(t *testing.T, at time.Duration) *push {
	t.Helper()
	due := m.tick(after(at))
	if len(due) != 1 {
		t.Fatalf("%d pushes are due at %s", len(due), at)
	}
	return due[0]
}

// none checks that no push is due.
func (m *machine) none(t *testing.T, why string, at time.Duration) {
	t.Helper()
	if due := m.tick(after(at)); len(due) != 0 {
		t.Errorf("%s: %d pushes are due", why, len(due))
	}
}

// R53: what was acknowledged is not due again.
func TestR53_AcknowledgedIsNotDueAgain(t *testing.T) {
	m := holding(t)
	m.lost(after(0))
	m.ended(after(0), m.one(t, 0), outcomeAcknowledged)
	m.none(t, "acknowledged", 0)
	if m.one(t, slotEvery).target.renewal.Sequence != 2 {
		t.Error("the next one does not follow")
	}
}

// R53: the number and the waits of pushes are those under one binding, and one that
// was withdrawn is none.
func TestR53_PushesAreCountedUnderOneBinding(t *testing.T) {
	m := holding(t)
	m.lost(after(0))
	p := m.one(t, 0)
	m.registered(after(0))
	m.ended(after(0), p, outcomeFailed)
	m.lost(after(0))
	if p = m.one(t, 0); p.pushed != 1 {
		t.Errorf("after one that was withdrawn it is number %d", p.pushed)
	}
	m.ended(after(0), p, outcomeRefused)
	m.registered(after(time.Second))
	m.bound(after(time.Second), bindingOf("node-a", 9))
	m.lost(after(time.Second))
	if p = m.one(t, time.Second); p.pushed != 1 {
		t.Errorf("under another binding it is number %d", p.pushed)
	}
}

// The end of a push that was made under another binding, or in another custody, says
// nothing of what there is now.
func TestEndsOfOlderPushes(t *testing.T) {
	m := holding(t)
	m.lost(after(0))
	older := m.one(t, 0)
	m.bound(after(0), bindingOf("node-a", 9))
	m.ended(after(0), older, outcomeSocketEnded)
	if !m.nodes["node-a"].bound {
		t.Error("the end of the older socket took the newer binding away")
	}

	m = holding(t)
	m.lost(after(0))
	older = m.one(t, 0)
	m.drop(after(0), "relay-node-unknown")
	if !older.withdrawn {
		t.Error("a push outlives custody")
	}
	m.registered(after(0))
	m.takes(t, spec{}, 0)
	m.lost(after(0))
	m.one(t, 0)
	m.ended(after(0), older, outcomeRefused)
	if m.nodes["node-a"].flight == nil || m.flying != 1 {
		t.Error("the end of the older push ended the newer one")
	}
}

// O9: a binding is confirmed by the session it was obtained from, and by no other.
func TestO9_ConfirmedByOneSession(t *testing.T) {
	m := newMachine(after(0))
	m.bound(after(0), bindingOf("node-a", 1)) // before the escrow hears of the session
	run := grid(spec{unsealed: true}, begin, 3)
	for session, want := range []contract.RefusalName{"", contract.EscrowNodeNotCarried} {
		m.registered(after(0))
		_, refused := m.hold(after(0), run, nil)
		if (refused == nil) != (want == "") || refused != nil && refused.Name != want {
			t.Errorf("session %d: %v", session, refused)
		}
		m.lost(after(0))
	}
}

// O9: what a node obtained while no session stood here is of the one to come.
func TestO9_ABindingOfTheOutageIsGoodForTheNext(t *testing.T) {
	m := holding(t)
	m.lost(after(0))
	m.bound(after(0), bindingOf("node-a", 9))
	m.none(t, "the binding is of the outage", 0)
	m.registered(after(0))
	m.lost(after(0))
	if p := m.one(t, 0); string(p.binding.Session.Received) != string(sessionOf("node-a", "ns:1", 9).Received) {
		t.Errorf("pushed under %s", p.binding.Session.Received)
	}
}

// A suspension ends with whatever follows it, and an end of custody leaves none and
// no session.
func TestSuspensionEndsWithWhatFollows(t *testing.T) {
	for name, follows := range map[string]func(m *machine){
		"a session": func(m *machine) { m.registered(after(0)); m.lost(after(0)) },
		"a loss":    func(m *machine) { m.lost(after(0)) },
		"an end of custody": func(m *machine) {
			m.registered(after(0))
			m.drop(after(0), "relay-node-unknown")
			if _, refused := m.hold(after(0), grid(spec{}, begin, 0), nil); refused == nil {
				t.Error("a hold is taken after custody ended")
			}
			m.registered(after(0))
			m.takes(t, spec{}, 0)
			m.lost(after(0))
		},
	} {
		m := holding(t)
		m.lost(after(0))
		m.suspend(after(0))
		m.none(t, name, 0)
		follows(m)
		m.one(t, 0)
	}
}

// O36: Cloudly keeps the order while its session stands, so that a step of the clock
// before the loss is none.
func TestO36_AStepUnderASessionIsNone(t *testing.T) {
	m := holding(t)
	back := func(d time.Duration) instant { return instant{begin.Add(d - 40*time.Second), d} }
	m.suspend(back(time.Minute))
	m.lost(back(2 * time.Minute))
	if due := m.tick(back(2 * time.Minute)); len(due) != 1 || m.clock.suspect {
		t.Errorf("%d pushes, suspect %t", len(due), m.clock.suspect)
	}
}

// §9.6: under a session a window goes with the next event.
func TestWindowsGoUnderASession(t *testing.T) {
	m := holding(t)
	m.suspend(after(slotWindow))
	if n := len(m.nodes["node-a"].run.renewals); n != 2 {
		t.Errorf("%d renewals stay when one has ended", n)
	}
}

// Acknowledgements of one projection do not push those of another out.
func TestAcknowledgementsAreOfProjections(t *testing.T) {
	m := newMachine(after(0))
	outage := func(projection contract.Reference, sequence int64, want bool) {
		t.Helper()
		m.registered(after(0))
		m.takes(t, spec{projection: projection, sequence: sequence}, 0)
		m.lost(after(0))
		due := m.tick(after(0))
		if len(due) > 0 != want {
			t.Errorf("sequence %d of %s: %d pushes", sequence, projection.ID, len(due))
		}
		for _, p := range due {
			m.ended(after(0), p, outcomeAcknowledged)
		}
	}
	first, other := projection("projection:1", 1), projection("projection:2", 1)
	outage(first, 5, true)
	for n := range int64(2 * rememberedProjections) {
		outage(other, 1+n, true)
	}
	outage(first, 4, false)
}

// What fits the bound of bytes exactly is held.
func TestTheLastByteThatIsHeld(t *testing.T) {
	x := grid(spec{unsealed: true}, begin, 3)
	for over, held := range map[int]bool{0: true, 1: false} {
		m := newMachine(after(0))
		m.registered(after(0))
		m.bound(after(0), bindingOf("node-a", 1))
		m.held = maximumHeldBytes - sizeOf(x) + over
		if _, refused := m.hold(after(0), x, nil); (refused == nil) != held {
			t.Errorf("%d bytes too many: %v", over, refused)
		}
	}
}

// R54: when a hook has returned, pushes that must not be any more are recalled, whether
// or not the loop has looked. At the end of custody the wait for their answers has ended
// with it.
func TestR54_PushesAreRecalledWhenAHookReturns(t *testing.T) {
	for name, row := range map[string]struct {
		hook func(r *rig)
		ends bool
	}{
		"registered": {func(r *rig) { r.SessionRegistered() }, false},
		"suspended":  {func(r *rig) { r.Suspend() }, false},
		"dropped":    {func(r *rig) { r.DropCustody("relay-node-unknown") }, true},
		"drained":    {func(r *rig) { r.SessionRegistered(); r.Quiesce() }, true},
	} {
		bubble(t, func(t *testing.T) {
			var push context.Context
			var recalled <-chan struct{}
			r := newIdleRig(t, func(ctx context.Context, recall <-chan struct{}, _ Binding, _ []byte) ([]byte, error) {
				push, recalled = ctx, recall
				<-ctx.Done()
				return nil, ctx.Err()
			})
			r.attached("node-a")
			r.must(grid(spec{}, begin, 1))
			r.SessionLost()
			var pushes sync.WaitGroup
			defer pushes.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r.turn(ctx, &pushes) // as the loop, which is not run
			synctest.Wait()
			began := time.Now()
			row.hook(r)
			select {
			case <-recalled:
			default:
				t.Errorf("%s: it may still be sent", name)
			}
			if ended := push.Err() == context.Canceled; ended != row.ends || !time.Now().Equal(began) {
				t.Errorf("%s: %v after %s", name, push.Err(), time.Since(began))
			}
		})
	}
}

// What is told and shown of the nodes is of the one whose coverage ends first, and
// one that has not registered again yet is not unreachable.
func TestTheFirstEndIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newIdleRig(t, nil)
		r.attached("node-a", "node-b")
		r.must(grid(spec{}, begin, 2))
		r.must(grid(spec{node: "node-b"}, begin, 1))
		r.SessionLost()
		if got := r.eventsOf(ReleaseBegun); len(got) != 1 || got[0] != "renewals-release-begun count=2 expiresAt=2000-01-01T00:15:00.000Z" {
			t.Errorf("told %q", got)
		}
		r.SessionRegistered()
		if s := r.Status().(Status); s.Unreachable != 0 || s.Nodes[0].Confirmed {
			t.Errorf("%+v", s)
		}
	})
}
