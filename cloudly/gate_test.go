package cloudly

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// request sends a request of Cloudly and returns the text it was refused with, or its
// answer.
func request(s *typedsocket.Socket, method, body string) string {
	a, err := s.Call(context.Background(), method, []byte(body), typedsocket.CallOptions{})
	if err != nil {
		if refused, ok := err.(*typedsocket.RemoteError); ok {
			return refused.Text
		}
		return err.Error()
	}
	defer a.Release()
	return string(a.Response())
}

// What Cloudly sends right behind its acceptance is served after OnRegistered, in
// order, and not refused.
func TestRequestsBehindTheAcceptanceWaitForTheHook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		answers := make(chan string, 20)
		w := newWorld(t, func(c *Config, w *world) {
			registered := c.Hooks.OnRegistered
			c.Hooks.OnRegistered = func(s *typedsocket.Socket, a Accepted) {
				time.Sleep(time.Second)
				registered(s, a)
			}
			c.Hooks.OnConfiguration = nil
			c.Handler = typedsocket.HandlerFunc(func(r *typedsocket.Request) {
				w.say("served %s", r.Body())
				r.Answer(r.Body())
			})
		})
		w.on(registration, func(_ int, r *typedsocket.Request) bool {
			s := r.Socket()
			r.Answer(w.acceptance(0).AppendJSON(nil))
			for i := range 10 {
				go func() {
					time.Sleep(time.Duration(i) * 200 * time.Millisecond)
					answers <- request(s, "applyClusterVpnNetwork", fmt.Sprintf(`{"n":%d}`, i))
				}()
			}
			return true
		})
		time.Sleep(10 * time.Second)
		want := []string{"registered 0 first=true"}
		for i := range 10 {
			want = append(want, fmt.Sprintf(`served {"n":%d}`, i))
		}
		w.wantHeard(want...)
		for range 10 {
			if got := <-answers; !strings.HasPrefix(got, `{"n":`) {
				t.Errorf("answered %s", got)
			}
		}
	})
}

// Before, without and after a registration Cloudly's requests are refused by name.
func TestRequestsWithoutARegistrationAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const method = "applyClusterVpnNetwork"
		// A hold has a name of its own for that (contract §9.3).
		names := map[string]string{method: "relay-not-ready: ", contract.MethodHoldDNSLeaseRenewals: "escrow-cloudly-only: "}
		held := make(chan *typedsocket.Request, 1)
		w := newWorld(t, func(c *Config, w *world) {
			c.Handler = typedsocket.HandlerFunc(func(r *typedsocket.Request) { w.say("served"); r.Answer([]byte(`{}`)) })
		})
		w.on(clientSession, func(n int, r *typedsocket.Request) bool {
			if n == 1 {
				held <- r
			}
			return n == 1
		})
		w.on(registration, func(n int, r *typedsocket.Request) bool {
			r.Refuse("relay-node-unknown", nil)
			return true
		})
		w.settle()
		for method, name := range names {
			if got := request(w.socket(), method, `{}`); !strings.HasPrefix(got, name) {
				t.Fatalf("before the registration: %s", got)
			}
		}
		behind := map[string]chan string{}
		for method := range names {
			behind[method] = make(chan string, 1)
		}
		w.on(registration, func(_ int, r *typedsocket.Request) bool {
			s := r.Socket()
			go func() {
				for method := range names {
					go func() { behind[method] <- request(s, method, `{}`) }()
				}
				time.Sleep(time.Second)
				r.Refuse("relay-node-unknown", nil)
			}()
			return true
		})
		w.standard(<-held)
		for method, name := range names {
			if got := <-behind[method]; !strings.HasPrefix(got, name) {
				t.Fatalf("while a refused registration was in flight: %s", got)
			}
		}
		w.wantState("refused")
		for method, name := range names {
			if got := request(w.socket(), method, `{}`); !strings.HasPrefix(got, name) {
				t.Fatalf("after the refusal: %s", got)
			}
		}
		w.on(registration, nil)
		time.Sleep(hold)
		w.wantState("registered")
		if got := request(w.socket(), method, `{}`); got != "{}" {
			t.Fatalf("registered: %s", got)
		}
		// A registration in flight holds up nothing while the session stands.
		w.on(registration, func(_ int, r *typedsocket.Request) bool { held <- r; return true })
		w.change(1)
		w.wantState("renewing")
		if got := request(w.socket(), method, `{}`); got != "{}" {
			t.Fatalf("renewing: %s", got)
		}
		w.standard(<-held)
	})
}

// What waits for a registration is bounded.
func TestHeldRequestsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var served sync.Map
		w := newWorld(t, func(c *Config, w *world) {
			c.Handler = typedsocket.HandlerFunc(func(r *typedsocket.Request) { served.Store(string(r.Body()), true); r.Answer([]byte(`{}`)) })
		})
		answers := make(chan string, heldRequests+10)
		w.on(registration, func(_ int, r *typedsocket.Request) bool {
			s := r.Socket()
			for i := range heldRequests + 10 {
				go func() { answers <- request(s, "pushClusterRouteTable", fmt.Sprintf(`{"n":%d}`, i)) }()
			}
			go func() { time.Sleep(time.Second); w.standard(r) }()
			return true
		})
		time.Sleep(2 * time.Second)
		w.wantState("registered")
		var good, over int
		for range heldRequests + 10 {
			switch got := <-answers; {
			case got == "{}":
				good++
			case strings.HasPrefix(got, "relay-overloaded: "):
				over++
			default:
				t.Errorf("answered %s", got)
			}
		}
		if good != heldRequests || over != 10 {
			t.Fatalf("%d served, %d refused", good, over)
		}
	})
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		answers := make(chan string, 3)
		w.on(registration, func(_ int, r *typedsocket.Request) bool {
			s := r.Socket()
			body := `{"x":"` + strings.Repeat("x", contract.CloudlyFrameLimit-1000) + `"}`
			for range 3 {
				go func() { answers <- request(s, "pushClusterRouteTable", body) }()
			}
			go func() { time.Sleep(5 * time.Second); w.standard(r) }()
			return true
		})
		time.Sleep(10 * time.Second)
		var got []string
		for range 3 {
			text := <-answers
			got = append(got, text[:min(len(text), 16)])
		}
		slices.Sort(got)
		if got[2] != "relay-overloaded" {
			t.Fatalf("answered %q", got)
		}
	})
}

// Shutting waits for the request that is being served.
func TestShutWaitsForTheHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config, w *world) {
			c.Handler = typedsocket.HandlerFunc(func(r *typedsocket.Request) {
				time.Sleep(200 * time.Millisecond) // longer than a handler should take
				w.say("served")
				r.Answer([]byte(`{}`))
			})
		})
		w.wantState("registered")
		w.heard()
		go request(w.socket(), "applyClusterVpnNetwork", `{}`)
		time.Sleep(time.Millisecond)
		w.session.listening(w.live)(&typedsocket.RemoteError{Text: "relay-node-foreign"})
		time.Sleep(time.Second)
		w.wantHeard("served", "custody relay-node-foreign", "lost relay-node-foreign")
	})
}

// A handler that panics costs its request, not the session, whoever calls it.
func TestAPanickingHandlerOfAHeldRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config, w *world) {
			c.Handler = typedsocket.HandlerFunc(func(r *typedsocket.Request) {
				if string(r.Body()) == "{}" {
					r.Answer([]byte(`{}`))
				}
				panic("marked-panic")
			})
		})
		answers := make(chan string, 2)
		w.on(registration, func(_ int, r *typedsocket.Request) bool {
			s := r.Socket()
			go func() { answers <- request(s, "applyClusterVpnNetwork", `{"n":1}`) }()
			go func() { answers <- request(s, "applyClusterVpnNetwork", `{}`) }()
			go func() { time.Sleep(time.Second); w.standard(r) }()
			return true
		})
		time.Sleep(2 * time.Second)
		w.wantState("registered")
		got := []string{<-answers, <-answers}
		slices.Sort(got)
		if !slices.Equal(got, []string{"Internal server error", "{}"}) {
			t.Fatalf("answered %q", got)
		}
	})
}

// The same on the socket's reader.
func TestAPanickingHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config, w *world) {
			c.Handler = typedsocket.HandlerFunc(func(r *typedsocket.Request) { panic("marked-panic") })
		})
		w.wantState("registered")
		if got := request(w.socket(), "applyClusterVpnNetwork", `{}`); got != "Internal server error" {
			t.Fatalf("answered %s", got)
		}
		w.wantState("registered")
		if text := w.log.String(); strings.Contains(text, "marked-panic") || !strings.Contains(text, "panic-recovered") {
			t.Fatalf("log %s", text)
		}
	})
}
