package appliance

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/listener"
	"serve.zone/relay/simulate"
)

// tally counts what many calls at once came to.
type tally struct {
	all sync.WaitGroup
	mu  sync.Mutex
	met map[string]int
}

func (c *tally) call(do func() error) {
	c.all.Go(func() {
		told := toldOf(do())
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.met == nil {
			c.met = map[string]int{}
		}
		c.met[told]++
	})
}

// so returns what the calls came to that have ended.
func (c *tally) so() map[string]int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	met := map[string]int{}
	for told, n := range c.met {
		met[told] = n
	}
	return met
}

// wantAtRest checks that nothing is in flight or queued any more.
func (r *rig) wantAtRest() {
	r.t.Helper()
	synctest.Wait()
	if s := r.carries(); s.InFlight.Bytes != 0 || s.InFlight.NodeRequests != 0 || s.InFlight.CloudlyRequests != 0 {
		r.t.Errorf("still in flight: %+v", s.InFlight)
	}
	for _, s := range r.relay.listener.Status().(listener.Status).Bound {
		if s.Serving != 0 || s.Pending != 0 || s.QueuedBytes != 0 {
			r.t.Errorf("still waiting on a socket of %s: %+v", s.Node, s)
		}
	}
}

// B031, B032, B044, B049: a node stops reading while Cloudly pushes a lot to it.
// The other nodes' reports and pushes take no time more for it, the session to
// Cloudly stands, memory is bounded; and in the end the node that does not read is
// cut, who waits for it is told by name, and nothing is left.
func TestB031_B032_B044_B049_ANodeThatDoesNotReadCostsItselfAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		up := newLines()
		r := newRig(t, long(up))
		r.registered(0)
		f := r.fleet(3)
		time.Sleep(time.Minute)
		before := f.weigh()
		f.nodes[0].StopReading()
		began := time.Now()
		body := []byte(`{"assignment":{"pad":"` + strings.Repeat("x", 48<<10) + `"}}`)
		var pushes tally
		for range 100 {
			pushes.call(func() error {
				ctx, cancel := context.WithTimeout(context.Background(), contract.ForwardTimeout+10*time.Second)
				defer cancel()
				_, err := r.cloudly.CallNode(ctx, f.ids[0], "applyRuntimeAssignment", body)
				return err
			})
		}
		refused := pushes.so()[overloaded]
		if s := r.carries(); s.InFlight.Bytes > contract.NodeInFlightLimit || refused == 0 || refused+s.InFlight.CloudlyRequests != 100 {
			t.Errorf("of 100 pushes %d are in flight with %d bytes, %d were refused as %s",
				s.InFlight.CloudlyRequests, s.InFlight.Bytes, refused, overloaded)
		}
		for time.Since(began) < 2*time.Minute {
			time.Sleep(time.Second)
			for i := 1; i < 3; i++ {
				asked := time.Now()
				if err := f.report(t, f.nodes[i], f.ids[i]); err != nil || time.Since(asked) != 0 {
					t.Fatalf("after %s a report of %s met %v and took %s", time.Since(began), f.ids[i], err, time.Since(asked))
				}
				if err := f.push(f.ids[i]); err != nil || time.Since(asked) != 0 {
					t.Fatalf("after %s a push to %s met %v and took %s", time.Since(began), f.ids[i], err, time.Since(asked))
				}
			}
		}
		pushes.all.Wait()
		for told := range pushes.so() {
			if told != overloaded && told != tooLate && told != string(contract.RelayNodeNotCarried) {
				t.Errorf("pushes met %v", pushes.so())
			}
		}
		if n := len(up.dialled()); n != 1 {
			t.Errorf("the session to Cloudly was lost: %d dials", n)
		}
		if closed := r.events(listener.EventSocketClosed); len(closed) != 1 || saidBy(closed[0])["node"] != f.ids[0] {
			t.Errorf("sockets that ended: %v", closed)
		}
		f.nodes[0].ResumeReading()
		f.wantRegistered(2 * time.Minute)
		time.Sleep(time.Minute)
		r.wantAtRest()
		f.wantPeace()
		f.close()
		wantFlat(t, before, f.weigh(), 1<<20)
	})
}

// B034, B038: a Cloudly that takes everything and answers nothing, and one that
// does not even read. What a node may have in flight is bounded, more is refused at
// once, each request ends by its deadline, and nothing of it stays.
func TestB034_B038_ACloudlyThatStandsStill(t *testing.T) {
	for name, still := range map[string]func(*simulate.Cloudly){
		"answers nothing": func(c *simulate.Cloudly) { c.ScriptAlways(reported, simulate.Ignore()) },
		"reads nothing":   (*simulate.Cloudly).StopReading,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, long(newLines()))
				r.registered(0)
				f := r.fleet(2)
				time.Sleep(time.Minute)
				before := f.weigh()
				still(r.cloudly)
				for _, id := range f.ids {
					f.lengthen(id, 32<<10)
				}
				began := time.Now()
				var reports tally
				for i, p := range f.nodes {
					for range 100 {
						reports.call(func() error { return f.report(t, p, f.ids[i]) })
					}
				}
				met := reports.so()
				if s := r.carries(); met[overloaded] == 0 || s.InFlight.NodeRequests+met[overloaded] != 200 ||
					s.InFlight.NodeRequests > 2*contract.NodeRequestsInFlight || s.InFlight.Bytes > 2*contract.NodeInFlightLimit {
					t.Errorf("of 200 reports %d are in flight with %d bytes; others met %v", s.InFlight.NodeRequests, s.InFlight.Bytes, met)
				}
				reports.all.Wait()
				if took := time.Since(began); took > contract.ForwardTimeout {
					t.Errorf("the last report ended after %s", took)
				}
				if met := reports.so(); met[overloaded]+met[tooLate] != 200 {
					t.Errorf("reports met %v", met)
				}
				r.wantAtRest()
				time.Sleep(silence) // one that does not read is given up then
				r.cloudly.ClearScript(reported)
				for _, id := range f.ids {
					f.lengthen(id, 0)
				}
				f.wantRegistered(2 * time.Minute)
				if err := f.report(t, f.nodes[0], f.ids[0]); err != nil {
					t.Errorf("a report after that met %v", err)
				}
				f.close()
				time.Sleep(time.Minute)
				r.wantAtRest()
				wantFlat(t, before, f.weigh(), 1<<20)
			})
		})
	}
}

// B041: for ten minutes one node fills a line of 20 kilobits a second to Cloudly
// with large reports, each of which takes most of half a minute, while the others
// report little. Nobody takes the slow peer for a dead one, and all are answered.
func TestB041_ASlowLineIsNotADeadOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		up := newLines()
		up.rate = 20_000 / 8
		r := newRig(t, long(up))
		r.registered(0)
		f := r.fleet(3)
		f.lengthen(f.ids[0], 64<<10)
		began := time.Now()
		var all sync.WaitGroup
		for i, p := range f.nodes {
			all.Go(func() {
				for time.Since(began) < 10*time.Minute {
					if err := f.report(t, p, f.ids[i]); err != nil {
						t.Errorf("after %s a report of %s met %v", time.Since(began), f.ids[i], err)
						return
					}
				}
			})
		}
		all.Wait()
		f.wantBooks(t)
		t.Logf("%v reports in %s", f.sent, time.Since(began))
		if full := int(10*time.Minute/time.Second) * up.rate / (64 << 10); f.sent[f.ids[0]] < full*9/10 || f.sent[f.ids[1]] < full {
			t.Errorf("%v reports crossed; the line has room for %d large ones", f.sent, full)
		}
		if n := len(up.dialled()); n != 1 || len(f.lines.dialled()) != 3 {
			t.Errorf("%d dials to Cloudly, %d of nodes", n, len(f.lines.dialled()))
		}
		r.wantAtRest()
		f.wantPeace()
	})
}
