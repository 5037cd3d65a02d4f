package appliance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/duty"
	"serve.zone/relay/forward"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket/buffer"
)

// Records of long runs are kept short: what they are judged by is judged at once.
const (
	cloudlyRecord = 1 << 20
	nodeRecord    = 64 << 10
)

// long is a relay for long runs: records are short, and the connections to
// Cloudly go through up.
func long(up *lines) change {
	return change{
		cloudly: func(c *simulate.CloudlyConfig) { c.RecordLimit = cloudlyRecord },
		relay:   func(c *Config) { c.Dial = up.through(c.Dial) },
	}
}

// fleet is a number of nodes with the account of what they reported.
type fleet struct {
	*ledger
	r     *rig
	lines *lines // of all nodes together
	nodes []*simulate.Pallet
	ids   []string
}

// fleet starts so many nodes and waits until they are registered.
func (r *rig) fleet(size int) *fleet {
	r.t.Helper()
	f := &fleet{ledger: newLedger(), r: r, lines: newLines()}
	r.cloudly.Handle(reported, f.take)
	for i := range size {
		f.join(fmt.Sprintf("node-%03d", i), nil)
	}
	f.wantRegistered(time.Minute)
	return f
}

// join starts one more node and waits for nothing.
func (f *fleet) join(id string, alter func(*simulate.PalletConfig)) *simulate.Pallet {
	f.r.t.Helper()
	p := f.r.dialling(id, func(c *simulate.PalletConfig) {
		c.RecordLimit = nodeRecord
		c.Dial = f.lines.through(c.Dial)
		if alter != nil {
			alter(c)
		}
	})
	f.nodes, f.ids = append(f.nodes, p), append(f.ids, id)
	return p
}

// wantRegistered waits until Cloudly has all nodes behind the socket that carries
// the relay, each under the session that the relay and the node itself hold.
func (f *fleet) wantRegistered(within time.Duration) {
	f.r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	synctest.Wait() // what has ended is known to all
	for i, p := range f.nodes {
		if err := p.Wait(ctx, f.ids[i], func() bool { return f.registered(i) }); err != nil {
			f.r.t.Fatalf("%v to be registered; the session to Cloudly stands: %v", err, f.r.upwards().Registered)
		}
	}
	synctest.Wait()
	for i, id := range f.ids {
		if !f.registered(i) {
			f.r.t.Fatalf("%s is not registered any more", id)
		}
	}
}

func (f *fleet) registered(i int) bool {
	state, _ := f.r.cloudly.Node(f.ids[i])
	bound, carried := f.r.relay.forward.Binding(f.ids[i])
	held, ok := f.nodes[i].Binding()
	return f.r.upwards().Registered && state.Connected && carried && bound.Confirmed && ok &&
		string(held.Received) == string(state.Session) && string(bound.Session.Received) == string(state.Session)
}

// wantPeace checks that no peer saw the relay break a rule.
func (f *fleet) wantPeace() { f.r.t.Helper(); f.r.wantNoViolations(f.nodes...) }

// reporting has every node report at random times, until the returned function is
// called, which waits for what is in flight.
func (f *fleet) reporting(random *rand.Rand, every time.Duration) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	for i, p := range f.nodes {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		all.Go(func() {
			timer := time.NewTimer(0)
			defer timer.Stop()
			for {
				timer.Reset(time.Duration(own.Int64N(int64(2 * every))))
				select {
				case <-done:
					return
				case <-timer.C:
					f.report(f.r.t, p, f.ids[i])
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { close(done); all.Wait() })
	f.r.t.Cleanup(stop)
	return stop
}

// weight is what the process holds once nothing moves.
type weight struct {
	heap       int // bytes, without the events that are held
	goroutines int
	buffers    int64
}

// weigh forgets what the test itself keeps, and weighs the rest.
func (f *fleet) weigh() weight {
	synctest.Wait()
	f.r.cloudly.Frames().Forget()
	for _, p := range f.nodes {
		p.Frames().Forget()
	}
	f.r.log.forget()
	f.r.rec.take()
	runtime.GC()
	runtime.GC() // what pools kept over the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	// What events hold has a bound and a meter of its own.
	events := gauge(f.r.t, f.r.relay.events.Metrics(), "relay_events_held_bytes")
	return weight{int(m.HeapAlloc) - int(events), runtime.NumGoroutine(), buffer.Lent()}
}

// gauge returns the value of a metric without labels.
func gauge(t *testing.T, set *duty.Metrics, name string) float64 {
	t.Helper()
	for _, family := range set.Snapshot() {
		if family.Name == name {
			return family.Samples[0].Value
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// wantFlat checks that the process holds no more than it did. Slack is what the heap
// may have grown by although nothing leaked: what the peers keep of registrations,
// tables that do not shrink, and what the runtime keeps for itself.
func wantFlat(t *testing.T, before, after weight, slack int) {
	t.Helper()
	if after.goroutines > before.goroutines {
		t.Errorf("%d goroutines, and %d before", after.goroutines, before.goroutines)
	}
	if after.buffers > before.buffers {
		t.Errorf("%d message buffers, and %d before", after.buffers, before.buffers)
	}
	t.Logf("heap %+d bytes, goroutines %+d", after.heap-before.heap, after.goroutines-before.goroutines)
	if after.heap > before.heap+slack {
		t.Errorf("%d bytes on the heap, and %d before", after.heap, before.heap)
	}
}

// carries is forward's part of the status document.
func (r *rig) carries() forward.Status { return r.relay.forward.Status().(forward.Status) }

// upwards is cloudly's part of the status document.
func (r *rig) upwards() cloudly.Status { return r.relay.cloudly.Status().(cloudly.Status) }

// pushing has Cloudly push to a random node at random times, until the returned
// function is called. What a push meets is judged by the nodes.
func (f *fleet) pushing(random *rand.Rand, every time.Duration) (stop func()) {
	done := make(chan struct{})
	own := rand.New(rand.NewPCG(random.Uint64(), 0))
	var pushes sync.WaitGroup
	pushes.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			timer.Reset(time.Duration(own.Int64N(int64(2 * every))))
			select {
			case <-done:
				return
			case <-timer.C:
				f.push(f.ids[own.IntN(len(f.ids))])
			}
		}
	})
	stop = sync.OnceFunc(func() { close(done); pushes.Wait() })
	f.r.t.Cleanup(stop)
	return stop
}

// push has Cloudly assign something to a node.
func (f *fleet) push(id string) error {
	_, err := f.r.cloudly.CallNode(context.Background(), id, "applyRuntimeAssignment", []byte(`{"assignment":{}}`))
	return err
}

// saidBy returns the fields of an event.
func saidBy(e duty.Event) map[string]string {
	said := map[string]string{}
	for _, f := range e.Fields {
		said[f.Key().String()] = f.String()
	}
	return said
}
