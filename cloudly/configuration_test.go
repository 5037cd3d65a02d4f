package cloudly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

const (
	getConfiguration = contract.DefaultMethodGetConfiguration
	absentDocument   = `{"configData":{"id":"c","data":{"name":"a"}}}`
	nullDocument     = `{"cluster":{"id":"c","data":{"relay":null}}}`
)

// R27, O37: a pushed document without relay block, absent or null, ends custody as
// relay-cluster-not-enabled does, and its answer comes after that.
func TestR27_APushWithoutRelayBlockEndsCustody(t *testing.T) {
	for _, document := range []string{absentDocument, nullDocument, `{"id":"c","data":{"name":"a"}}`} {
		bubble(t, func(t *testing.T) {
			answered := make(chan error, 1)
			var early bool
			w := newWorld(t, func(c *Config, w *world) {
				custody := c.Hooks.OnCustodyEnded
				c.Hooks.OnCustodyEnded = func(name contract.RefusalName) {
					time.Sleep(time.Second)
					early = len(answered) > 0
					custody(name)
				}
			})
			w.wantState("registered")
			w.heard()
			go func() { answered <- w.push(document) }()
			if err := <-answered; err != nil {
				t.Fatal(err)
			}
			if early {
				t.Fatal("answered before custody had ended")
			}
			w.wantState("refused")
			w.wantHeard("custody relay-cluster-not-enabled", "lost relay-cluster-not-enabled")
			if got := w.check(CheckRefusal); got != "failing relay-cluster-not-enabled" {
				t.Fatalf("check %s", got)
			}
			time.Sleep(hold - 2*time.Second)
			w.wantSequences(0)
			time.Sleep(2 * time.Second)
			w.wantSequences(0, 1)
		})
	}
}

// R27: a pushed document is handed over on the socket that stands, so endpoints change
// without a reconnect.
func TestR27_APushIsHandedOverOnTheSameSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got contract.ClusterConfiguration
		w := newWorld(t, func(c *Config, _ *world) {
			c.Hooks.OnConfiguration = func(c contract.ClusterConfiguration) { got = c }
		})
		w.wantState("registered")
		document := `{"configData":{"id":"c","data":{"relay":{"origin":"` + testOrigin + `"},"nodes":[{"id":"node-a","data":{"corestore":{"endpoint":"http://10.0.4.8:3000"}}}]}}}`
		if err := w.push(document); err != nil {
			t.Fatal(err)
		}
		w.settle()
		node, ok := got.FindNode("node-a")
		if !ok || node.Corestore == nil || node.Corestore.Endpoint != "http://10.0.4.8:3000" {
			t.Fatalf("handed over %+v", got)
		}
		w.wantSequences(0)
		if n, _ := w.opened(); n != 1 {
			t.Fatalf("%d sockets", n)
		}
	})
}

// O11: a changed origin has the relay register anew, once; the first document and
// the registration's own answer are compared with nothing.
func TestO11_AChangedOriginRegistersOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.set(func() { w.origin = "https://other.example" }) // not what the registration answers
		w.wantState("registered")
		w.wantSequences(0)
		w.set(func() { w.origin = "https://new.example" })
		for range 3 {
			if err := w.push(documentOf("https://new.example")); err != nil {
				t.Fatal(err)
			}
		}
		w.settle()
		w.wantSequences(0, 1)
		time.Sleep(time.Hour)
		w.wantSequences(0, 1)
		if got := w.published(); !slices.Contains(got, "cloudly-origin-changed") {
			t.Fatalf("events %q", got)
		}
	})
}

// O11: what is no cluster document changes nothing and is an event.
func TestO11_ABodyWithoutDocumentChangesNothing(t *testing.T) {
	for _, body := range []string{`{}`, `{"configData":null}`, `{"configData":{"data":1}}`, `{"cluster":[]}`, `{"configData":{"id":"c"},"services":[]}`} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.wantState("registered")
			w.heard()
			var refused *typedsocket.RemoteError
			if err := w.push(body); !errors.As(err, &refused) || !strings.HasPrefix(refused.Text, "configuration-unrecognised: ") ||
				string(refused.Data) != `{"code":"configuration-unrecognised"}` {
				t.Fatalf("push of %s: %v", body, err)
			}
			w.wantHeard()
			w.wantState("registered")
			if got := w.check(CheckConfiguration); got != "failing document-unrecognised" {
				t.Fatalf("check %s", got)
			}
			if got := w.published(); !slices.Contains(got, "cloudly-configuration-unrecognised") {
				t.Fatalf("events %q", got)
			}
			if err := w.push(documentOf(testOrigin)); err != nil {
				t.Fatal(err)
			}
			if got := w.check(CheckConfiguration); got != "ok" {
				t.Fatalf("check %s", got)
			}
		})
	}
}

// O11: a relay block that is not valid changes nothing held; the check names it.
func TestO11_AnInvalidRelayBlockChangesNothing(t *testing.T) {
	for _, block := range []string{`{"origin":"https://R.example"}`, `{}`, `[]`, `{"origin":"` + testOrigin + `","more":1}`} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.wantState("registered")
			w.heard()
			if err := w.push(`{"configData":{"data":{"relay":` + block + `}}}`); err != nil {
				t.Fatal(err)
			}
			w.wantHeard("configuration invalid ")
			w.wantState("registered")
			if got := w.check(CheckConfiguration); got != "failing relay-block-invalid" {
				t.Fatalf("check %s", got)
			}
			if got := w.published(); !slices.Contains(got, "cloudly-configuration-faulty relay-block-invalid") {
				t.Fatalf("events %q", got)
			}
		})
	}
}

// An endpoint that is not valid counts as none and is named; the rest holds.
func TestO11_AnInvalidEndpointIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		w.heard()
		if err := w.push(`{"configData":{"data":{"relay":{"origin":"` + testOrigin + `"},"nodes":[{"id":"node-a","data":{"corestore":{"endpoint":"http://u@h"}}}]}}}`); err != nil {
			t.Fatal(err)
		}
		w.wantHeard("configuration stated " + testOrigin)
		if got := w.check(CheckConfiguration); got != "failing node-endpoint-invalid" {
			t.Fatalf("check %s", got)
		}
		if got := w.published(); !slices.Contains(got, "cloudly-configuration-faulty node-endpoint-invalid") {
			t.Fatalf("events %q", got)
		}
	})
}

// O11: absence counts only in a document that was asked for, or came, after the
// last accepted registration.
func TestO11_AbsenceOfAnEarlierPullDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		held := make(chan *typedsocket.Request, 4)
		w := newWorld(t)
		w.on(getConfiguration, func(n int, r *typedsocket.Request) bool {
			if n == 1 {
				held <- r
			}
			return n == 1
		})
		w.wantState("registered")
		w.change(1) // accepted while the pull is still on its way
		w.wantSequences(0)
		w.settle()
		w.wantSequences(0, 1)
		(<-held).Answer([]byte(absentDocument))
		w.wantState("registered")
		if got := w.heard(); !slices.Equal(got, []string{"registered 0 first=true", "registered 1 first=false", "configuration stated " + testOrigin}) {
			t.Fatalf("hooks said %q", got)
		}
	})
	bubble(t, func(t *testing.T) { // a pull that began afterwards counts
		w := newWorld(t)
		w.set(func() { w.origin = "" })
		w.wantState("refused")
		w.wantHeard("registered 0 first=true", "custody relay-cluster-not-enabled", "lost relay-cluster-not-enabled")
	})
}

// The loop looks again: a document can be overtaken on its way from the pull.
func TestO11_AnOvertakenDocumentIsNotLookedAt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		w.heard()
		absent, err := contract.ReadClusterConfiguration([]byte(absentDocument))
		if err != nil {
			t.Fatal(err)
		}
		w.session.post(mail{event: event{epoch: 1}, pulled: &pulledConfiguration{configuration: absent, reads: w.session.reads.Load() - 1}})
		w.wantHeard("configuration stated " + testOrigin)
		w.session.post(mail{event: event{epoch: 7}, pulled: &pulledConfiguration{configuration: absent, reads: w.session.reads.Load()}})
		w.wantHeard()
		w.session.post(mail{event: event{epoch: 1}, pulled: &pulledConfiguration{configuration: absent, reads: w.session.reads.Load()}})
		w.wantHeard("custody relay-cluster-not-enabled", "lost relay-cluster-not-enabled")
	})
}

// A push while a registration is in flight: an acceptance leaves the decision to
// the pull behind it; anything else lets it count.
func TestO11_APushDuringARegistration(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(w *world, r *typedsocket.Request)
		want []string
	}{
		"accepted": {func(w *world, r *typedsocket.Request) { w.standard(r) },
			[]string{"registered 1 first=false", "configuration stated " + testOrigin}},
		"refused": {func(_ *world, r *typedsocket.Request) { r.Refuse("no", nil) },
			[]string{"custody relay-cluster-not-enabled", "lost relay-cluster-not-enabled"}},
		"refused by name": {func(_ *world, r *typedsocket.Request) { r.Refuse("relay-node-foreign", nil) },
			[]string{"custody relay-node-foreign", "lost relay-node-foreign"}},
		"refused by protocol": {func(_ *world, r *typedsocket.Request) { r.Refuse("x", []byte(refusalData("major-mismatch"))) },
			[]string{"custody relay-cluster-not-enabled", "lost relay-cluster-not-enabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				held := make(chan *typedsocket.Request, 1)
				w := newWorld(t)
				w.wantState("registered")
				w.heard()
				w.on(registration, func(n int, r *typedsocket.Request) bool {
					if n == 2 {
						held <- r
					}
					return n == 2
				})
				w.change(1)
				w.wantState("renewing")
				if err := w.push(absentDocument); err != nil {
					t.Fatal(err)
				}
				w.wantHeard()
				test.end(w, <-held)
				w.wantHeard(test.want...)
			})
		})
	}
}

// A pull that was overtaken by a push is asked again: the older document must not
// take the place of the newer one.
func TestAnOvertakenPullIsAskedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		held := make(chan *typedsocket.Request, 1)
		w := newWorld(t)
		w.on(getConfiguration, func(n int, r *typedsocket.Request) bool {
			if n == 1 {
				held <- r
			}
			return n == 1
		})
		w.wantState("registered")
		w.heard()
		if err := w.push(documentOf("https://new.example")); err != nil {
			t.Fatal(err)
		}
		w.wantHeard("configuration stated https://new.example")
		w.set(func() { w.origin = "https://new.example" })
		(<-held).Answer([]byte(documentOf("https://old.example")))
		w.wantHeard("configuration stated https://new.example")
		w.wantSequences(0)
	})
}

// Pushes are served on an authenticated socket alone, and only a few wait.
func TestPushesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.on(clientSession, func(_ int, r *typedsocket.Request) bool {
			go func() {
				time.Sleep(time.Millisecond)
				var refused *typedsocket.RemoteError
				if err := w.push(documentOf(testOrigin)); !errors.As(err, &refused) || !strings.HasPrefix(refused.Text, "relay-not-ready") {
					t.Errorf("push on a socket that is not authenticated: %v", err)
				}
				w.on(clientSession, nil)
				w.standard(r)
			}()
			return true
		})
		time.Sleep(time.Second)
		w.wantState("registered")
	})
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newWorld(t, func(c *Config, w *world) {
			c.Hooks.OnConfiguration = func(c contract.ClusterConfiguration) { <-release; w.say("configured") }
		})
		time.Sleep(time.Second) // the pulled one holds the loop
		results := make(chan error, 5)
		for range 5 {
			go func() { results <- w.push(documentOf(testOrigin)) }()
		}
		time.Sleep(time.Second)
		close(release)
		overloaded := 0
		for range 5 {
			var refused *typedsocket.RemoteError
			if err := <-results; errors.As(err, &refused) && strings.HasPrefix(refused.Text, "relay-overloaded: ") {
				overloaded++
			} else if err != nil {
				t.Error(err)
			}
		}
		if overloaded != 5-waitingPushes {
			t.Fatalf("%d pushes were refused", overloaded)
		}
	})
}

// The pulls run after every accepted registration; one that fails is tried again,
// ever less often, while the session stands, and ends with it.
func TestPullsAfterEveryRegistration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config, w *world) {
			c.Hooks.OnConfiguration = nil
			n := 0
			c.Pulls = []func(context.Context, *typedsocket.Socket) error{
				func(context.Context, *typedsocket.Socket) error { panic("marked") },
				func(context.Context, *typedsocket.Socket) error { n++; w.say("good %d", n); return nil },
			}
		})
		w.settle()
		w.wantHeard("registered 0 first=true", "good 1")
		w.change(1)
		w.wantHeard("registered 1 first=false", "good 2")
		w.kill()
		time.Sleep(2 * time.Second)
		w.wantHeard("lost socket-lost", "registered 2 first=true", "good 3")
		time.Sleep(time.Hour)
		w.wantHeard()
		w.wantState("registered")
	})
	bubble(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		w := newWorld(t, func(c *Config, w *world) {
			c.Pulls = []func(context.Context, *typedsocket.Socket) error{func(context.Context, *typedsocket.Socket) error {
				w.note.Lock()
				defer w.note.Unlock()
				at = append(at, time.Since(start))
				return errors.New("no")
			}}
		})
		time.Sleep(time.Hour)
		w.wantState("registered")
		w.kill()
		time.Sleep(100 * time.Millisecond)
		w.note.Lock()
		n := len(at)
		for i := 1; i < n; i++ {
			if gap := at[i] - at[i-1]; gap > longestDelay || i > 7 && gap < longestDelay/2 {
				t.Errorf("try %d after %v", i, gap)
			}
		}
		w.note.Unlock()
		if n < 60 || n > 140 {
			t.Fatalf("%d tries in an hour", n)
		}
		time.Sleep(300 * time.Millisecond) // no session yet
		w.note.Lock()
		defer w.note.Unlock()
		if len(at) != n {
			t.Fatal("pulled without a session")
		}
	})
}

// A pull that ignores its context holds up a custody drop for a moment only.
func TestAStuckPullIsLeftBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newWorld(t, func(c *Config, _ *world) {
			c.Pulls = []func(context.Context, *typedsocket.Socket) error{func(context.Context, *typedsocket.Socket) error {
				<-release
				return nil
			}}
		})
		w.wantState("registered")
		w.heard()
		start := time.Now()
		w.refuse(registration, "relay-node-foreign", `{}`)
		w.change(1)
		time.Sleep(pullWait)
		if told, want := w.heard(), []string{"custody relay-node-foreign", "custody relay-node-foreign", "lost relay-node-foreign"}; !slices.Equal(told, want) {
			t.Fatalf("hooks said %q, want %q", told, want)
		}
		if waited := time.Since(start); waited > time.Second {
			t.Fatalf("custody ended after %v", waited)
		}
		if got := w.published(); !slices.Contains(got, "cloudly-pull-stuck") {
			t.Fatalf("events %q", got)
		}
		close(release)
	})
}

// Method names that configuration changed are used, and the contract's are not.
func TestConfiguredMethodNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config, w *world) {
			c.Methods = Methods{ExchangeIdentity: "jump", PushConfiguration: "pushIt", GetConfiguration: "pullIt"}
			w.on("jump", func(_ int, r *typedsocket.Request) bool {
				r.Answer([]byte(`{"identity":{"jwt":"a.b.c"}}`))
				return true
			})
			w.on("pullIt", func(_ int, r *typedsocket.Request) bool { r.Answer([]byte(documentOf(testOrigin))); return true })
		})
		w.wantState("registered")
		w.wantHeard("registered 0 first=true", "configuration stated "+testOrigin)
		if err := w.push(documentOf(testOrigin)); err == nil {
			t.Fatal("the default name was served")
		}
		a, err := w.socket().Call(context.Background(), "pushIt", []byte(nullDocument), typedsocket.CallOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a.Release()
		w.wantState("refused")
		if got := fmt.Sprint(w.order()); strings.Contains(got, "get") {
			t.Fatalf("frames %s", got)
		}
	})
}
