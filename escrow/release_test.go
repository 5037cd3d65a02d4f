package escrow

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
)

// R50: attached over slot boundaries nothing is pushed; once the session is lost, a
// renewal is at once.
func TestR50_ReleaseOnlyWhileDetached(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 23))
		time.Sleep(25 * time.Minute)
		r.wantTaken()
		r.SessionLost()
		r.wantTaken("node-a 3 @00:25:00.000")
		r.SessionLost() // again: nothing
		r.wantTaken()
	})
}

// R51: one push a slot, at its first moment; the newer one where two overlap, and
// nothing behind the last window. A gap between windows stays one.
func TestR51_OnlyTheCurrentWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		windows := append(windowsOf(begin.Add(slotEvery), 2), windowsOf(begin.Add(2*time.Hour), 1)...)
		windows[1].NotBefore += 1234 // opens later than its slot
		r.must(runOf(spec{}, windows))
		time.Sleep(5*time.Minute + 300*time.Millisecond)
		r.SessionLost()
		time.Sleep(5*time.Minute - 301*time.Millisecond)
		r.wantTaken() // 1 ms before
		time.Sleep(5 * time.Hour)
		r.wantTaken("node-a 1 @00:10:00.000", "node-a 2 @00:20:01.234", "node-a 3 @02:00:00.000")
	})
}

// R51: of the windows that are open the one with the highest sequence is pushed.
// Windows are ordered by their ends alone, so a later one may open earlier.
func TestR51_HighestSequenceThatIsCurrent(t *testing.T) {
	at := func(m time.Duration) int64 { return begin.Add(m * time.Minute).UnixMilli() }
	x := newRun(runOf(spec{}, []contract.DNSWindow{
		{IssuedAt: at(0), NotBefore: at(10), ExpiresAt: at(14)},
		{IssuedAt: at(1), NotBefore: at(2), ExpiresAt: at(15)},
		{IssuedAt: at(1), NotBefore: at(12), ExpiresAt: at(16)},
	}))
	for m, want := range map[time.Duration]int64{0: 0, 1: 0, 2: 2, 9: 2, 10: 2, 11: 2, 12: 3, 15: 3, 16: 0} {
		got, ok := x.current(at(m))
		if got.sequence != want || ok != (want > 0) {
			t.Errorf("minute %d: %d %v, want %d", m, got.sequence, ok, want)
		}
	}
	if got, _ := x.current(at(12) - 1); got.sequence != 2 {
		t.Errorf("1 ms before the third opens: %d", got.sequence)
	}
	if _, ok := x.current(at(16) - 1); !ok {
		t.Error("not current 1 ms before its end")
	}
	if next, _ := x.next(at(0)); next != at(2) {
		t.Errorf("the next one opens at %d", next)
	}
	if _, ok := x.next(at(12)); ok {
		t.Error("one opens after all have")
	}
	if n := x.left(at(15)); n != 1 {
		t.Errorf("%d windows have not ended", n)
	}
}

// R52: a renewal is pushed under the session that the node obtained, and with the bytes
// of signed as they came.
func TestR52_PushedWithTheNodesOwnBinding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.SessionRegistered()
		first, second := bindingOf("node-a", 1), bindingOf("node-a", 2)
		r.Bound(first)
		run := grid(spec{}, begin, 3)
		r.must(run)
		r.Bound(second) // a rotation
		r.SessionLost()
		synctest.Wait()
		all := r.take()
		if len(all) != 1 || all[0].session != string(second.Session.Received) || all[0].signed != string(run.Renewals[0].Received) {
			t.Fatalf("pushed %+v", all)
		}
		if !strings.Contains(all[0].signed, "\t\"sign\\u0061ture\" :  ") {
			t.Error("the record was written anew")
		}
	})
}

// R53: what was refused, or answered with something else, or not at all, is pushed
// again while it is current: after 5 s doubling to 60 s.
func TestR53_PushedAgainUntilAcknowledged(t *testing.T) {
	wrong := func(change func(x *contract.DNSLeaseRenewalReference)) func(context.Context, pushed) ([]byte, error) {
		return func(_ context.Context, p pushed) ([]byte, error) {
			x := p.renewal.Reference()
			change(&x)
			return contract.ApplyDNSLeaseRenewalAnswer{Status: "admitted", Renewal: x}.AppendJSON(nil), nil
		}
	}
	for name, row := range map[string]struct {
		answer  func(context.Context, pushed) ([]byte, error)
		outcome outcome
		takes   time.Duration
	}{
		"refused":        {refusing, outcomeRefused, 0},
		"wrong digest":   {wrong(func(x *contract.DNSLeaseRenewalReference) { x.Digest = markerDigest }), outcomeForeign, 0},
		"wrong sequence": {wrong(func(x *contract.DNSLeaseRenewalReference) { x.Sequence++ }), outcomeForeign, 0},
		"wrong projection": {wrong(func(x *contract.DNSLeaseRenewalReference) { x.Projection.Generation++ }),
			outcomeForeign, 0},
		"no answer":    {func(context.Context, pushed) ([]byte, error) { return nil, nil }, outcomeForeign, 0},
		"unread":       {func(context.Context, pushed) ([]byte, error) { return []byte(`{"status":1}`), nil }, outcomeForeign, 0},
		"silent":       {silent, outcomeFailed, pushWait},
		"broken":       {func(context.Context, pushed) ([]byte, error) { return nil, errBroken }, outcomeFailed, 0},
		"panics":       {func(context.Context, pushed) ([]byte, error) { panic("with a secret") }, outcomeFailed, 0},
		"dropped late": {func(context.Context, pushed) ([]byte, error) { return nil, fmt.Errorf("x: %w", errDropped) }, outcomeFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				r.attached("node-a")
				r.must(grid(spec{}, begin, 1))
				r.answering(row.answer)
				r.SessionLost()
				time.Sleep(6*row.takes + 3*time.Minute)
				var at time.Duration
				var want []string
				for _, wait := range []time.Duration{0, 5, 10, 20, 40, 60} {
					at += wait * time.Second
					want = append(want, "node-a 1 @"+begin.Add(at).Format("15:04:05.000"))
					at += row.takes
				}
				got := r.taken()
				if len(got) < 6 || fmt.Sprint(got[:6]) != fmt.Sprint(want) {
					t.Fatalf("pushed %q, want %q", got, want)
				}
				if n := r.metrics.ended.Of(row.outcome).Value(); n < 5 {
					t.Errorf("%d are counted as %s", n, row.outcome)
				}
				if n := r.node("node-a"); n.Acknowledged != nil || n.LastOutcome != row.outcome.String() || n.Released.Sequence != 1 {
					t.Errorf("the status shows %+v", n)
				}
				r.answering(nil)
				time.Sleep(lastRetry + row.takes)
				if n := len(r.taken()); n != 1 || r.node("node-a").Acknowledged == nil {
					t.Errorf("%d pushes until it acknowledged", n)
				}
				time.Sleep(slotWindow) // acknowledged: not again
				r.wantTaken()
			})
		})
	}
}

// R53: a refused renewal is not pushed when its window has ended, and the next one is
// pushed in its own time, not in that of the one before.
func TestR53_RetriesEndWithTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 2))
		r.answering(refusing)
		r.SessionLost()
		time.Sleep(2 * time.Hour)
		var first, second []pushed
		for _, p := range r.take() {
			if p.renewal.Sequence == 1 {
				first = append(first, p)
			} else {
				second = append(second, p)
			}
		}
		if last := first[len(first)-1].at; last.After(begin.Add(slotEvery)) {
			t.Errorf("the first was pushed at %s, when the second was current", last)
		}
		if !second[0].at.Equal(begin.Add(slotEvery)) || !second[1].at.Equal(begin.Add(slotEvery+firstRetry)) {
			t.Errorf("the second was pushed at %s and %s", second[0].at, second[1].at)
		}
		if last := second[len(second)-1].at; !last.Before(begin.Add(slotEvery+slotWindow)) || last.Before(begin.Add(slotEvery+slotWindow-lastRetry)) {
			t.Errorf("the last push was at %s", last)
		}
	})
}

// R54: once Cloudly is back nothing is pushed any more, and what is in flight is
// withdrawn.
func TestR54_ReattachStopsRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b")
		r.must(grid(spec{}, begin, 23))
		r.must(grid(spec{node: "node-b"}, begin, 23))
		r.answering(func(ctx context.Context, p pushed) ([]byte, error) {
			if p.node == "node-a" {
				return refusing(ctx, p)
			}
			return silent(ctx, p)
		})
		r.SessionLost()
		if n := len(r.taken()); n != 2 {
			t.Fatalf("%d pushes", n)
		}
		r.SessionRegistered()
		time.Sleep(pushWait) // an answer could come so long
		synctest.Wait()
		if n := r.metrics.ended.Of(outcomeWithdrawn).Value(); n != 1 {
			t.Errorf("%d were withdrawn", n)
		}
		time.Sleep(2 * time.Hour)
		r.wantTaken()
	})
}

// A flap loses nothing and repeats nothing: a slot that was acknowledged is not
// pushed again, nor one whose answer can still come; one that was withdrawn before it
// was sent is pushed at once.
func TestFlapsOfTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b", "node-c", "node-d")
		for _, id := range []string{"node-a", "node-b", "node-c", "node-d"} {
			r.must(grid(spec{node: id}, begin, 23))
		}
		r.answering(func(ctx context.Context, p pushed) ([]byte, error) {
			switch p.node {
			case "node-b":
				return unsent(ctx, p)
			case "node-c":
				return refusing(ctx, p)
			case "node-d":
				return silent(ctx, p)
			}
			return acknowledging(p), nil
		})
		for range 4 {
			r.SessionLost()
			time.Sleep(900 * time.Millisecond)
			r.SessionRegistered()
			time.Sleep(1100 * time.Millisecond)
		}
		r.wantTaken("node-a 1 @00:00:00.000", "node-b 1 @00:00:00.000", "node-b 1 @00:00:02.000", "node-b 1 @00:00:04.000",
			"node-b 1 @00:00:06.000", "node-c 1 @00:00:00.000", "node-c 1 @00:00:06.000", "node-d 1 @00:00:00.000")
	})
}

// One push in flight for a node, whatever becomes due meanwhile. When a higher slot
// opens, the older push is withdrawn and the newer follows at once.
func TestOnePushInFlightForANode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var flying, most int
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 3))
		r.answering(func(ctx context.Context, p pushed) ([]byte, error) {
			r.mu.Lock()
			flying++
			most = max(most, flying)
			r.mu.Unlock()
			defer func() { r.mu.Lock(); flying--; r.mu.Unlock() }()
			return silent(ctx, p)
		})
		time.Sleep(slotEvery - 10*time.Second)
		r.SessionLost()
		time.Sleep(11 * time.Second)
		r.wantTaken("node-a 1 @00:09:50.000", "node-a 2 @00:10:00.000")
		time.Sleep(slotEvery)
		r.mu.Lock()
		defer r.mu.Unlock()
		if most != 1 {
			t.Errorf("%d pushes at once", most)
		}
	})
}

// Never a lower sequence after a higher one was acknowledged, also of another run of
// the same projection; a new projection begins anew.
func TestSequencesOfAProjection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		outage := func(s spec, first time.Time, want ...string) {
			t.Helper()
			r.SessionRegistered()
			r.Bound(bindingOf("node-a", 1))
			r.must(grid(s, first, 2))
			r.SessionLost()
			r.wantTaken(want...)
		}
		outage(spec{sequence: 7}, begin, "node-a 7 @00:00:00.000")
		outage(spec{sequence: 7}, begin)                    // the same again
		outage(spec{sequence: 6}, begin.Add(-slotEvery/10)) // 6 is lower
		outage(spec{sequence: 6, projection: projection("projection:1", 5)}, begin, "node-a 6 @00:00:00.000")
		outage(spec{sequence: 2, projection: projection("projection:2", 1)}, begin, "node-a 2 @00:00:00.000")
		outage(spec{sequence: 5, projection: projection("projection:1", 5)}, begin)
		outage(spec{sequence: 8, projection: projection("projection:1", 5)}, begin, "node-a 8 @00:00:00.000")
		outage(spec{sequence: 1, projection: projection("projection:2", 1)}, begin)
		r.Unbound("node-a")
		r.SessionRegistered()
		r.must(grid(spec{}, begin, 0)) // nothing is known of it but what it acknowledged
		outage(spec{sequence: 2, projection: projection("projection:2", 1)}, begin)
	})
}

// Issue 4, 2: a node whose socket breaks cannot be served again before Cloudly is
// back; it is named. Its run is released under the new binding alone.
func TestNodeWhoseSocketBreaksDuringAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b", "node-c")
		for _, id := range []string{"node-a", "node-b", "node-c"} {
			r.must(grid(spec{node: id}, begin, 23))
		}
		r.Unbound("node-c") // before the outage
		r.SessionLost()
		r.wantTaken("node-a 1 @00:00:00.000", "node-b 1 @00:00:00.000")
		time.Sleep(time.Minute)
		r.Unbound("node-b")
		r.answering(gone) // node-a's socket breaks under the push
		time.Sleep(slotEvery)
		r.wantTaken("node-a 2 @00:10:00.000")
		r.Unbound("node-a") // and is told of afterwards
		for id, from := range map[string]time.Duration{"node-a": slotEvery, "node-b": time.Minute, "node-c": 0} {
			if n := r.node(id); n.Reachable || !n.UnreachableFrom.Equal(begin.Add(from)) || n.Held == 0 || n.ExpiresAt.IsZero() {
				t.Errorf("%+v", n)
			}
		}
		until := begin.Add(22*slotEvery + slotWindow).Format("2006-01-02T15:04:05.000Z")
		want := []string{"renewals-node-unreachable node=node-c reason=no-session expiresAt=" + until,
			"renewals-node-unreachable node=node-b reason=socket-ended expiresAt=" + until,
			"renewals-node-unreachable node=node-a reason=socket-ended expiresAt=" + until}
		if got := r.eventsOf(NodeUnreachable); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("events %q", got)
		}
		if s := r.Status().(Status); s.Unreachable != 3 {
			t.Errorf("%d are unreachable", s.Unreachable)
		}
		r.SessionRegistered() // a flap is no news of them
		r.SessionLost()
		if got := r.eventsOf(NodeUnreachable); len(got) != 3 {
			t.Errorf("after a flap %q", got)
		}
		time.Sleep(time.Hour)
		r.wantTaken()

		// A node that reconnects is served under its new binding, and only after the
		// session under which it obtained it is lost.
		r.answering(nil)
		next := bindingOf("node-b", 2)
		r.Bound(next)
		synctest.Wait()
		r.SessionRegistered()
		time.Sleep(slotEvery)
		r.wantTaken()
		r.SessionLost()
		synctest.Wait()
		all := r.take()
		if len(all) != 1 || all[0].session != string(next.Session.Received) || !r.node("node-b").Reachable {
			t.Errorf("pushed %v", all)
		}
	})
}

// §9.6: a session of another scope drops the run; the same scope keeps it.
func TestRunGoesWithItsScope(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 3))
		r.Bound(Binding{NodeID: "node-a", Session: sessionOf("node-a", "ns:1", 2), Confirmed: true})
		if n := r.node("node-a"); n.Held != 3 {
			t.Errorf("after a rotation: %+v", n)
		}
		r.Bound(Binding{NodeID: "node-a", Session: sessionOf("node-a", "ns:2", 3), Confirmed: true})
		if s := r.Status().(Status); s.Runs != 0 || s.HeldBytes != 0 {
			t.Errorf("after another scope: %+v", s)
		}
		if got := r.eventsOf(RunDropped); len(got) != 1 || got[0] != "renewals-dropped node=node-a reason=scope-changed count=3" {
			t.Errorf("events %q", got)
		}
		r.SessionLost()
		r.wantTaken()
	})
}

// §9.6: under a session windows go when they end, the run with the last one; during
// an outage they are skipped and stay.
func TestWindowsThatEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 2))
		r.must(grid(spec{}, begin.Add(-slotEvery), 2)) // the first one ends in 5 minutes
		held := func() int {
			r.Escrow.mu.Lock()
			defer r.Escrow.mu.Unlock()
			return len(r.machine.nodes["node-a"].run.renewals)
		}
		time.Sleep(5*time.Minute - time.Millisecond)
		synctest.Wait()
		if n := held(); n != 2 {
			t.Errorf("%d held before the first ends", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := held(); n != 1 {
			t.Errorf("%d held when the first has ended", n)
		}
		time.Sleep(slotEvery)
		synctest.Wait()
		if s := r.Status().(Status); s.Runs != 0 || s.HeldBytes != 0 {
			t.Errorf("after the last ended: %+v", s)
		}

		r.must(grid(spec{sequence: 5}, begin.Add(15*time.Minute), 1))
		r.SessionLost()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := held(); n != 1 || r.node("node-a").Held != 0 {
			t.Errorf("during the outage %d stay", n)
		}
		if got := r.eventsOf(CoverageEnded); len(got) != 1 {
			t.Errorf("events %q", got)
		}
		r.SessionRegistered()
		if s := r.Status().(Status); s.Runs != 0 {
			t.Errorf("after the return: %+v", s)
		}
	})
}

// R55: another escrow, which a restarted relay is, holds and releases nothing.
func TestR55_RestartHoldsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 23))
		r.SessionLost()
		r.wantTaken("node-a 1 @00:00:00.000")
		r.stop()

		again := newRig(t)
		if s := again.Status().(Status); s.Attached || s.Runs != 0 || len(s.Nodes) != 0 {
			t.Errorf("after a restart: %+v", s)
		}
		again.Bound(bindingOf("node-a", 2))
		time.Sleep(4 * time.Hour)
		again.wantTaken()
	})
}
