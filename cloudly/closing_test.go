package cloudly

import (
	"context"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// R24: a Cloudly that refuses and closes at once is heard all the same: the refusal was
// read before the socket ended, whichever of the two the loop is told of first.
func TestR24_ARefusalIsHeardAlthoughTheSocketEndsWithIt(t *testing.T) {
	refuseAndClose := func(name contract.RefusalName) func(int, *typedsocket.Request) bool {
		return func(_ int, r *typedsocket.Request) bool {
			s := r.Socket()
			r.Refuse(string(name), nil)
			s.Close(typedsocket.ClosePolicy, "refused")
			return true
		}
	}
	for _, name := range []contract.RefusalName{stale, notOn, sequence} {
		for _, where := range []string{exchangeMethod, clientSession, registration, "getClusterVpnNetwork"} {
			t.Run(string(name)+"/"+where, func(t *testing.T) {
				for range 20 {
					bubble(t, func(t *testing.T) {
						w := newWorld(t)
						switch where {
						case "getClusterVpnNetwork":
							w.wantState("registered")
							w.on(where, refuseAndClose(name))
							if _, err := w.session.Call(context.Background(), w.live, where, []byte(`{}`), typedsocket.CallOptions{}); err == nil {
								t.Fatal("no error")
							}
						case registration:
							w.wantState("registered")
							w.on(where, refuseAndClose(name))
							w.change(1)
						default:
							w.on(where, refuseAndClose(name))
						}
						time.Sleep(100 * time.Millisecond)
						custody := 0
						for _, said := range w.heard() {
							if said == "custody "+string(name) {
								custody++
							}
						}
						if custody != 1 {
							t.Fatalf("custody ended %d times", custody)
						}
						w.on(where, nil)
						dials := len(w.dialled())
						time.Sleep(hold - 2*time.Second)
						if name == stale && len(w.dialled()) != dials {
							t.Fatalf("dialled with a stale credential, at %v", w.dialled())
						}
						time.Sleep(longestDelay)
						w.wantState("registered")
					})
				}
			})
		}
	}
}

// The same with an acceptance: the session begins, ends, and another follows.
func TestAnAcceptanceOnASocketThatEndsWithIt(t *testing.T) {
	for range 100 {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.on(registration, func(n int, r *typedsocket.Request) bool {
				if n > 1 {
					return false
				}
				s := r.Socket()
				r.Answer(w.acceptance(0).AppendJSON(nil))
				s.Close(typedsocket.CloseGoingAway, "leaving")
				return true
			})
			w.wantHeard("registered 0 first=true", "lost socket-lost")
			w.wantState("waiting")
			time.Sleep(firstDelay)
			w.wantHeard("registered 1 first=true", "configuration stated "+testOrigin)
		})
	}
}
