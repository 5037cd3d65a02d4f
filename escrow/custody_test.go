package escrow

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket"
)

// wantSilence checks that nothing more reaches a node once custody has ended.
func wantSilence(t *testing.T, e *end, before int) {
	t.Helper()
	e.gate.reopen()
	select {
	case <-e.relay.Done():
	case <-time.After(time.Second):
		t.Fatal("the socket goes on")
	}
	time.Sleep(time.Hour)
	if got := e.requests(); len(got) != before {
		t.Errorf("%d pushes reached the node after custody had ended", len(got)-before)
	}
}

// R20–R24, contract §6.2: after DropCustody has returned, nothing that was held leaves,
// whatever stage a push was in.
func TestR20_NothingLeavesAfterCustodyEnded(t *testing.T) {
	for name, reach := range map[string]func(r *rig, node *end){
		"not begun": func(*rig, *end) {},
		"answered":  func(r *rig, _ *end) { r.SessionLost(); synctest.Wait() },
		"waiting for the answer": func(r *rig, node *end) {
			node.serving(func(q *typedsocket.Request) { time.AfterFunc(time.Minute, q.Drop) })
			r.SessionLost()
			synctest.Wait()
		},
		"in the queue": func(r *rig, node *end) {
			node.gate.shut()
			fill(node)
			r.SessionLost()
			synctest.Wait()
		},
		"in the queue, its time up": func(r *rig, node *end) {
			node.gate.shut()
			fill(node)
			r.SessionLost()
			time.Sleep(pushWait + time.Second)
			synctest.Wait()
		},
		"about to be handed over": func(r *rig, _ *end) { r.SessionLost() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, n := newWireRig(t)
				node := n.dial()
				r.attached()
				r.bind("node-a", node, 1)
				r.must(grid(spec{}, begin, 23))
				reach(r, node)
				before := len(node.seenNow())
				start := time.Now()
				r.DropCustody("relay-node-unknown")
				if d := time.Since(start); d != 0 {
					t.Errorf("it took %s", d)
				}
				out := node.relay.Stats().BytesOut
				if s := r.Status().(Status); s.Runs != 0 || s.HeldBytes != 0 || len(s.Nodes) != 0 {
					t.Errorf("still held: %+v", s)
				}
				if name == "not begun" || name == "answered" {
					time.Sleep(time.Hour)
					if n := len(node.requests()); n != before || node.relay.Err() != nil {
						t.Errorf("%d pushes after, socket %v", n-before, node.relay.Err())
					}
					return
				}
				if err := node.relay.Err(); err != nil && !strings.Contains(err.Error(), "4002") {
					t.Errorf("the socket ended with %v", err)
				}
				if name == "about to be handed over" {
					// Either it never left, or it had reached the node before.
					node.relay.Cut(typedsocket.CloseNormal, "test over")
					before = len(node.seenNow())
				}
				if after := node.relay.Stats().BytesOut; after != out {
					t.Errorf("%d bytes left afterwards", after-out)
				}
				wantSilence(t, node, before)
			})
		})
	}
}

func (e *end) seenNow() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.seen...)
}

// fill gives a socket something to write that its peer does not read.
func fill(e *end) {
	go e.relay.Call(context.Background(), "anything", fmt.Appendf(nil, `{"pad":%q}`, strings.Repeat("x", 256<<10)), typedsocket.CallOptions{Timeout: time.Second})
	synctest.Wait()
}

// R20: whatever the moment, no push begins after DropCustody has returned.
func TestR20_DropCustodyAgainstTheLoop(t *testing.T) {
	for range 300 {
		var mu sync.Mutex
		dropped, late := false, 0
		e := New(Config{Push: func(context.Context, <-chan struct{}, Binding, []byte) ([]byte, error) {
			for range 20 { // the way to a socket's queue
				mu.Lock()
				if dropped {
					late++
				}
				mu.Unlock()
			}
			return nil, errBroken
		}})
		ctx, cancel := context.WithCancel(context.Background())
		ran := make(chan struct{})
		go func() { defer close(ran); e.Run(ctx) }()
		e.SessionRegistered()
		for _, id := range []string{"node-a", "node-b", "node-c"} {
			e.Bound(bindingOf(id, 1))
			e.step(func(m *machine, at instant) {
				m.hold(at, runOf(spec{node: id, unsealed: true}, windowsOf(at.wall.Add(-time.Minute), 1)), nil)
			})
		}
		e.SessionLost()
		e.DropCustody("relay-node-unknown")
		mu.Lock()
		dropped = true
		mu.Unlock()
		cancel()
		<-ran
		if late > 0 {
			t.Fatalf("a push went on %d times after custody had ended", late)
		}
	}
}

// A push that ignores its context costs a second and is told of.
func TestPushThatDoesNotEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 1))
		r.answering(func(context.Context, pushed) ([]byte, error) { <-release; return nil, errBroken })
		r.SessionLost()
		synctest.Wait()
		start := time.Now()
		r.DropCustody("relay-node-unknown")
		if d := time.Since(start); d != dropWait {
			t.Errorf("it took %s", d)
		}
		if got := r.eventsOf(PushStuck); len(got) != 1 || got[0] != "renewal-push-stuck count=1" {
			t.Errorf("events %q", got)
		}
		// What it comes to afterwards means nothing to the new custody.
		r.attached("node-a")
		r.must(grid(spec{}, begin, 1))
		close(release)
		r.answering(nil)
		synctest.Wait()
		r.take()
		r.SessionLost()
		r.wantTaken("node-a 1 @00:00:01.000")
	})
}

// A refusal that ends custody stops releases from the moment it was read; if no end
// of custody follows, it counts for nothing.
func TestSuspend(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a", "node-b")
		r.must(grid(spec{}, begin, 23))
		r.must(grid(spec{node: "node-b"}, begin, 23))
		r.Suspend() // a session stands: it means nothing here
		r.answering(unsent)
		r.SessionLost()
		if n := len(r.taken()); n != 2 {
			t.Fatalf("%d pushes", n)
		}
		r.Suspend()
		synctest.Wait()
		if n := r.metrics.ended.Of(outcomeWithdrawn).Value(); n != 2 {
			t.Errorf("%d were withdrawn", n)
		}
		r.Unbound("node-b") // part of the end of custody, and no news of the outage
		r.answering(nil)
		time.Sleep(suspendWait - time.Millisecond)
		r.wantTaken()
		time.Sleep(time.Millisecond)
		r.wantTaken("node-a 1 @00:00:05.000")
		if got := r.eventsOf(NodeUnreachable); len(got) != 0 {
			t.Errorf("events %q", got)
		}
		time.Sleep(slotEvery - 6*time.Second)
		r.Suspend()
		r.DropCustody("relay-node-unknown")
		time.Sleep(time.Hour)
		r.wantTaken()
		if got := r.eventsOf(CustodyDropped); len(got) != 1 || got[0] != "renewals-custody-ended count=2 reason=relay-node-unknown" {
			t.Errorf("events %q", got)
		}
	})
}

// A drain lets pushes in flight end, and cuts them short when its time is up.
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 23))
		r.answering(func(_ context.Context, p pushed) ([]byte, error) {
			time.Sleep(2 * time.Second)
			return acknowledging(p), nil
		})
		r.SessionLost()
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		if err := r.Drain(ctx); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("drained after %s: %v", time.Since(start), err)
		}
		if n := r.node("node-a"); n.Acknowledged == nil {
			t.Error("the push did not count")
		}
		r.taken()
		time.Sleep(time.Hour)
		r.Unbound("node-x") // whatever wakes the loop
		r.wantTaken()
	})
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 23))
		r.answering(silent)
		r.SessionLost()
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := r.Drain(ctx); err != context.DeadlineExceeded || time.Since(start) != time.Second {
			t.Errorf("drained after %s: %v", time.Since(start), err)
		}
		synctest.Wait()
		if s := r.Status().(Status); s.PushesRunning != 0 || !s.Draining {
			t.Errorf("%+v", s)
		}
	})
}

// Run ends its pushes when it is told to end, and waits for them.
func TestRunEndsItsPushes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.attached("node-a")
		r.must(grid(spec{}, begin, 1))
		r.answering(func(ctx context.Context, _ pushed) ([]byte, error) {
			<-ctx.Done()
			time.Sleep(2 * time.Second)
			return nil, ctx.Err()
		})
		r.SessionLost()
		synctest.Wait()
		start := time.Now()
		r.stop()
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("it took %s", d)
		}
	})
}

// All methods at once, with a Cloudly that comes and goes; the race detector watches.
func TestAllAtOnce(t *testing.T) {
	r := newRig(t)
	var all sync.WaitGroup
	each := func(do func(i int)) {
		all.Go(func() {
			for i := range 100 {
				do(i)
			}
		})
	}
	id := func(i int) string { return fmt.Sprintf("node-%d", i%3) }
	each(func(i int) { r.SessionRegistered() })
	each(func(i int) { r.SessionLost() })
	each(func(i int) { r.Bound(bindingOf(id(i), i)) })
	each(func(i int) { r.Unbound(id(i)) })
	each(func(i int) { r.hold(bodyOf(grid(spec{node: id(i)}, time.Now().Add(-time.Minute), 3))) })
	each(func(i int) { r.Suspend() })
	each(func(i int) { r.Status(); r.Checks(time.Now()); r.Metrics().Snapshot() })
	each(func(i int) {
		if i%10 == 0 {
			r.DropCustody("relay-node-unknown")
		}
	})
	all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.Drain(ctx); err != nil {
		t.Error(err)
	}
}
