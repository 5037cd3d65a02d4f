package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// startDrain begins a drain and returns its result, to be waited for.
func (r *rig) startDrain(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.Drain(ctx) }()
	synctest.Wait()
	return done
}

// TestDrainOfIdleNodes: each is told to dial again, spread, within 3 s.
func TestDrainOfIdleNodes(t *testing.T) {
	for _, n := range []int{0, 1, 10, 200} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			cloud := r.cloudly()
			var nodes []*wire
			for i := range n {
				w, _ := r.bound(cloud, fmt.Sprintf("node-%03d", i))
				nodes = append(nodes, w)
			}
			start := time.Now()
			done := r.startDrain(context.Background())
			at := map[time.Duration]int{}
			for _, w := range nodes {
				if code := w.closed(); code != typedsocket.CloseRestart {
					t.Errorf("closed with %d", code)
				}
				at[time.Since(start)]++
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d > 3*time.Second || n == 0 && d != 0 {
				t.Errorf("%d nodes: it took %s", n, d)
			}
			if len(at) != n {
				t.Errorf("%d nodes were closed at %d instants", n, len(at))
			}
			if len(r.Bindings()) != 0 {
				t.Error("still bound")
			}
			if got, want := r.eventsOf(NodeSocketsDrained), []string{fmt.Sprintf("node-sockets-drained count=%d", n)}; !slices.Equal(got, want) {
				t.Errorf("events %q", got)
			}
		})
	}
}

// B110: a drain takes nothing new, in either direction, and what came before it is
// answered.
func TestB110_DrainTakesNothingNewAndEndsWhatIsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		a, sessionA := r.bound(cloud, "node-a")
		b, sessionB := r.bound(cloud, "node-b")
		idle, _ := r.bound(cloud, "node-c")
		fresh := r.dialNode()
		a.send(report, body(sessionA, `"x":1`))
		up := cloud.recv()
		cloud.send("applyRuntimeAssignment", body(sessionB, `"x":1`))
		down := b.recv()
		start := time.Now()
		done := r.startDrain(context.Background())
		if code := idle.closed(); code != typedsocket.CloseRestart || time.Since(start) != 0 {
			t.Errorf("the idle node was closed with %d after %s", code, time.Since(start))
		}
		time.Sleep(5 * time.Second)
		for range 2 {
			a.send(report, body(sessionA, `"x":1`))
			refused(t, a.recv(), contract.RelayNotReady)
			cloud.send("applyRuntimeAssignment", body(sessionB, `"x":1`))
			refused(t, cloud.recv(), contract.RelayNotReady)
			fresh.send(register, registrationOf("node-d"))
			refused(t, fresh.recv(), contract.RelayNotReady)
		}
		cloud.none()
		cloud.answer(up, `"response":{"last":1}`)
		if f := a.recv(); string(f.Response) != `{"last":1}` {
			t.Errorf("answered %s", f.text)
		}
		b.answer(down, `"response":{"last":2}`)
		if f := cloud.recv(); string(f.Response) != `{"last":2}` {
			t.Errorf("answered %s", f.text)
		}
		for _, w := range []*wire{a, b} {
			if code := w.closed(); code != typedsocket.CloseRestart {
				t.Errorf("closed with %d", code)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > 6*time.Second {
			t.Errorf("it took %s", d)
		}
	})
}

// TestDrainEndsWithItsContext, whatever is in flight, and with a peer that does
// not say goodbye.
func TestDrainEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		busy, session := r.bound(cloud, "node-a")
		silent, _ := r.bound(cloud, "node-b")
		busy.send(report, body(session, `"x":1`))
		cloud.recv()
		silent.gate.shut()
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done := r.startDrain(ctx)
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it returned %v", err)
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("it took %s", d)
		}
		if code := busy.closed(); code != typedsocket.CloseRestart {
			t.Errorf("closed with %d", code)
		}
	})
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		silent, _ := r.bound(cloud, "node-b")
		silent.gate.shut()
		start := time.Now()
		if err := <-r.startDrain(context.Background()); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("an idle drain took %s", d)
		}
	})
}
