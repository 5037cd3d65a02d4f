package cloudly

import (
	"context"
	"slices"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// disabled is a cluster document without relay block.
const disabled = `{"configData":{"id":"cluster-a","data":{"name":"a","relay":null}}}`

// R24: a name that was read counts, also when whoever asked gave up at that moment.
func TestR24_ANameIsHeardThoughItsCallerGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		w := newWorld(t, func(c *Config, w *world) {
			c.Hooks.OnCustodyHeard = func(*typedsocket.Socket) { cancel(); time.Sleep(time.Millisecond) }
		})
		w.wantState("registered")
		w.heard()
		w.refuse("getClusterVpnNetwork", "relay-node-foreign: x", `{"code":"relay-node-foreign"}`)
		if _, err := w.session.Call(ctx, w.live, "getClusterVpnNetwork", nil, typedsocket.CallOptions{}); err == nil {
			t.Error("a refused call has no error")
		}
		time.Sleep(time.Second)
		w.wantHeard("custody relay-node-foreign", "lost relay-node-foreign")
	})
}

// R24: a pull is cancelled when its socket ends, and what it was refused by counts all
// the same.
func TestR24_ANameIsHeardThoughItsSocketEnds(t *testing.T) {
	for range 100 {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.on(contract.DefaultMethodGetConfiguration, func(n int, r *typedsocket.Request) bool {
				if n > 1 {
					return false
				}
				r.Refuse("relay-credential-generation-stale: gone", []byte(`{"code":"relay-credential-generation-stale"}`))
				r.Socket().Close(typedsocket.CloseNormal, "bye")
				return true
			})
			time.Sleep(100 * time.Millisecond)
			if told := w.heard(); !slices.Contains(told, "custody relay-credential-generation-stale") {
				t.Fatalf("hooks said %q", told)
			}
		})
	}
}

// R20: whatever order a disabling push and the refusal of a pull come in: when the
// relay is enabled again on the same socket, Cloudly is served.
func TestR20_ARefusalBesideThePushLeavesNothingShut(t *testing.T) {
	for range 300 {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, func(c *Config, w *world) {
				c.Handler = typedsocket.HandlerFunc(func(r *typedsocket.Request) { r.Answer([]byte(`{}`)) })
			})
			w.on(contract.DefaultMethodGetConfiguration, func(n int, r *typedsocket.Request) bool {
				if n > 1 {
					return false
				}
				go func() {
					if a, err := r.Socket().Call(context.Background(), contract.DefaultMethodPushConfiguration, []byte(disabled), typedsocket.CallOptions{}); err == nil {
						a.Release()
					}
				}()
				go r.Refuse("relay-cluster-not-enabled: x", []byte(`{"code":"relay-cluster-not-enabled"}`))
				return true
			})
			time.Sleep(100 * time.Millisecond)
			w.wantState("refused")
			if err := w.push(documentOf(testOrigin)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			w.wantState("registered")
			a, err := w.socket().Call(context.Background(), "anything", []byte(`{}`), typedsocket.CallOptions{})
			if err != nil {
				t.Fatalf("Cloudly is refused: %v", err)
			}
			a.Release()
		})
	}
}

// R21, R22: a configuration that says what it always said shortens no wait, however
// often the socket is lost meanwhile.
func TestR21_LossesDoNotShortenTheWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(contract.MethodRegisterClusterRelay, "relay-node-foreign: x", `{"code":"relay-node-foreign"}`)
		for range 10 {
			time.Sleep(20 * time.Second)
			w.kill()
		}
		time.Sleep(90 * time.Second)
		if n := len(w.of(contract.MethodRegisterClusterRelay)); n != 1 {
			t.Errorf("%d registrations in 290 s", n)
		}
		time.Sleep(2 * time.Minute)
		if n := len(w.of(contract.MethodRegisterClusterRelay)); n < 2 {
			t.Error("no registration after 300 s")
		}
	})
}

// R21: while a name is waited for, hearing it again neither ends anything nor begins
// the wait anew.
func TestR21_TheSameNameAgainChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(contract.MethodRegisterClusterRelay, "relay-node-foreign: x", `{"code":"relay-node-foreign"}`)
		time.Sleep(100 * time.Second)
		w.wantState("refused")
		w.heard()
		due := w.status().NextAttemptAt
		w.session.listening(w.session.live.sock)(&typedsocket.RemoteError{Text: "relay-node-foreign"})
		time.Sleep(time.Second)
		w.wantHeard()
		if now := w.status().NextAttemptAt; !now.Equal(due) {
			t.Errorf("the wait moved by %s", now.Sub(due))
		}
	})
}

// A Cloudly that pushes for each pull is not asked without pause.
func TestPullsThatAreOvertakenPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.on(contract.DefaultMethodGetConfiguration, func(n int, r *typedsocket.Request) bool {
			go w.push(documentOf(testOrigin))
			time.Sleep(time.Millisecond)
			return false
		})
		time.Sleep(time.Minute)
		if n := len(w.of(contract.DefaultMethodGetConfiguration)); n < 4 || n > 20 {
			t.Errorf("%d pulls in a minute", n)
		}
	})
}
