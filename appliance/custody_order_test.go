package appliance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/forward"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// spy is a duty of which a test makes what it needs.
type spy struct {
	name    string
	dropped func(why string)
}

func (s *spy) Name() string                  { return s.name }
func (s *spy) Checks(time.Time) []duty.Check { return nil }
func (s *spy) Status() any                   { return SpyStatus{} }
func (s *spy) Drain(context.Context) error   { return nil }
func (s *spy) DropCustody(why string) {
	if s.dropped != nil {
		s.dropped(why)
	}
}

// SpyStatus is what a spy shows.
type SpyStatus struct{}

// quoted is what a panic of a duty may quote.
const quoted = "a-panic-that-quotes-a-secret"

// wantFailed waits for a relay that ends by itself, and checks that it said why
// and left nothing behind.
func (r *rig) wantFailed(says string) {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		r.t.Fatalf("the relay goes on\n%s", r.log)
	}
	if r.err == nil || !strings.Contains(r.err.Error(), says) {
		r.t.Errorf("the relay ended with %v, want %q", r.err, says)
	}
	if n := len(r.events(EventFailed)); n != 1 {
		r.t.Errorf("the failure was an event %d times", n)
	}
	if strings.Contains(r.log.String()+fmt.Sprint(r.err), quoted) {
		r.t.Error("the panic's value is shown")
	}
	for _, address := range []string{relayListens, operatorAt} {
		if !r.unbound(address) {
			r.t.Errorf("%s is still bound", address)
		}
	}
	after(0)
	if sockets := r.cloudly.Sockets(); len(sockets) != 0 {
		r.t.Errorf("sockets to cloudly stand: %v", sockets)
	}
}

// A duty that panics in a drop keeps no other from dropping, wherever it stands
// among them; what it may still hold does not outlive the process.
func TestCustodyIsDroppedAroundADutyThatPanics(t *testing.T) {
	for name, at := range map[string]func(parts []part) int{
		"first": func([]part) int { return 0 },
		"before forward": func(parts []part) int {
			return slices.IndexFunc(parts, func(p part) bool { return p.duty.Name() == forward.Name })
		},
		"last": func(parts []part) int { return len(parts) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, change{idle: true})
				broken := part{duty: &spy{name: "broken", dropped: func(string) { panic(quoted) }}}
				r.relay.parts = slices.Insert(r.relay.parts, at(r.relay.parts), broken)
				r.start()
				r.registered(0)
				a, b := r.wired("node-a"), r.wired("node-b")
				for _, method := range recorded {
					if _, err := r.cloudly.Call(r.soon(), method, []byte(`{}`)); err != nil {
						t.Fatal(err)
					}
				}
				r.cloudly.Script(relayCall, simulate.RefuseNamed(contract.RelayNodeForeign, "moved"))
				r.again()
				r.wantFailed("the duty broken did not drop custody")
				a.wantClosed(typedsocket.CloseCustodyEnded)
				b.wantClosed(typedsocket.CloseCustodyEnded)
				if held := r.rec.holds(); len(held) != 0 {
					t.Errorf("still held: %v", held)
				}
				if heard := r.rec.take(); !slices.Contains(heard, "dropped relay-node-foreign") {
					t.Errorf("the duties were told %v", heard)
				}
				if n := len(r.relay.forward.Bindings()); n != 0 {
					t.Errorf("%d bindings", n)
				}
			})
		})
	}
}

// A drop runs before anything else happens on Cloudly's socket: while it does,
// nothing leaves, Cloudly and nodes are refused, and when a duty is asked to drop,
// forward and the listener have.
func TestCustodyIsDroppedBeforeAnythingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const long = 5 * time.Second
		var r *rig
		var at time.Time
		var lost []time.Duration
		r, a, b := holding(t, change{parts: func(*Appliance) []part {
			return []part{{
				duty: &spy{name: "slow", dropped: func(string) {
					if n := len(r.relay.forward.Bindings()); n != 0 {
						t.Errorf("%d bindings", n)
					}
					at = time.Now()
					time.Sleep(long)
				}},
				lost: func(error) { lost = append(lost, time.Since(at)) },
			}}
		}})
		r.cloudly.Script(relayCall, simulate.RefuseNamed(contract.RelaySequenceNotAdvancing, "no"))
		began := time.Now()
		r.again()
		after(long - time.Millisecond)
		a.wantClosed(typedsocket.CloseCustodyEnded)
		b.wantClosed(typedsocket.CloseCustodyEnded)
		if held := r.rec.holds(); len(held) != len(recorded) {
			t.Errorf("a duty behind the slow one holds %v", held)
		}
		sockets := r.cloudly.Sockets()
		if len(sockets) != 1 {
			t.Fatalf("sockets %v", sockets)
		}
		r.wantNotServed(a, sockets[0].Number)
		for _, m := range r.cloudly.Frames().Messages() {
			if !m.Sent && m.Request && m.At.After(began) {
				t.Errorf("cloudly received %s while custody was dropped", m.Method)
			}
		}
		after(time.Millisecond)
		if held := r.rec.holds(); len(held) != 0 {
			t.Errorf("still held: %v", held)
		}
		if !slices.Equal(lost, []time.Duration{long}) {
			t.Errorf("the loss was told %v after the drop had begun", lost)
		}
		after(time.Second)
		r.cloudly.SetConfigurationBody(nil)
		r.wantSequences(0, 1, 2)
	})
}

// arming returns what panics once it is armed.
func arming() (arm, burst func()) {
	var armed atomic.Bool
	return func() { armed.Store(true) }, func() {
		if armed.Load() {
			panic(quoted)
		}
	}
}

// A hook that panics leaves the session's loop in an unknown state: the relay
// ends, and with it everything that it holds.
func TestAHookThatPanicsEndsTheRelay(t *testing.T) {
	for name, hook := range map[string]func(burst func()) part{
		"registered": func(burst func()) part {
			return part{registered: func(*typedsocket.Socket, cloudly.Accepted) { burst() }}
		},
		"configured": func(burst func()) part { return part{configured: func(contract.ClusterConfiguration) { burst() }} },
		"lost":       func(burst func()) part { return part{lost: func(error) { burst() }} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				arm, burst := arming()
				p := hook(burst)
				p.duty = &spy{name: "broken"}
				r, a, _ := holding(t, change{parts: func(*Appliance) []part { return []part{p} }})
				arm()
				r.cloudly.CutSockets()
				r.wantFailed("the session's loop panicked")
				a.wantClosed(typedsocket.CloseGoingAway)
			})
		})
	}
}

// What panics on the way of one request, or in a pull, costs that alone.
func TestAPanicThatCostsOneThing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		arm, burst := arming()
		pulled := 0
		r, a, b := holding(t, change{parts: func(*Appliance) []part {
			return []part{{
				duty:    &spy{name: "broken"},
				bound:   func(forward.Binding) { burst() },
				unbound: func(string) { burst() },
				serves:  map[string]func(*typedsocket.Request){contract.MethodBackupService: func(*typedsocket.Request) { burst() }},
				pulls: []func(context.Context, *typedsocket.Socket) error{func(context.Context, *typedsocket.Socket) error {
					pulled++
					burst()
					return nil
				}},
			}}
		}})
		arm()
		if _, err := r.cloudly.Call(r.soon(), contract.MethodBackupService, []byte(`{}`)); err == nil || strings.Contains(err.Error(), quoted) {
			t.Errorf("a request that is served by a panic: %v", err)
		}
		if err := a.register(); err != nil {
			t.Errorf("a registration whose hook panics: %v", err)
		}
		b.sock.Close(typedsocket.CloseNormal, "bye")
		after(time.Minute)
		if err := a.report(); err != nil {
			t.Errorf("a report: %v", err)
		}
		r.wantHeard("bound node-a", "unbound node-b")
		before := pulled
		r.again()
		after(10 * time.Second)
		if pulled < before+3 {
			t.Errorf("a pull that panics was tried %d times", pulled-before)
		}
		r.wantStillHeld()
		r.wantAgainst()
		if strings.Contains(r.shown(), quoted) {
			t.Error("a panic's value is shown")
		}
	})
}

// The standing work of a duty that ends while the relay goes on is a failure of
// the relay, however it ends.
func TestADutyWhoseWorkEndsEndsTheRelay(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(context.Context) error
		says string
	}{
		"panics":          {func(context.Context) error { panic(quoted) }, "the duty broken panicked"},
		"fails":           {func(context.Context) error { return errors.New("out of tape") }, "out of tape"},
		"returns nothing": {func(context.Context) error { return nil }, "the duty broken ended of its own accord"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				end := make(chan struct{})
				r, a, _ := holding(t, change{parts: func(*Appliance) []part {
					return []part{{duty: &spy{name: "broken"}, run: func(ctx context.Context) error { <-end; return c.run(ctx) }}}
				}})
				close(end)
				r.wantFailed(c.says)
				a.wantClosed(typedsocket.CloseGoingAway)
			})
		})
	}
}
