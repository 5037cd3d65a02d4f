package cloudly

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// hold is how long a relay waits that Cloudly's records do not admit.
const hold = contract.UndispatchedRetryInterval

// carriages are the ways in which a name counts on the relay's own calls (design
// §4, O10).
var carriages = map[string]func(name contract.RefusalName) (text, data string){
	"text":            func(n contract.RefusalName) (string, string) { return string(n), `{}` },
	"text and reason": func(n contract.RefusalName) (string, string) { return string(n) + ": the records say so", `{}` },
	"code": func(n contract.RefusalName) (string, string) {
		return "refused", `{"code":"` + string(n) + `","more":1}`
	},
}

// R20, R21, R22: custody ends before anything else is sent; the socket stays; the
// next registration goes out 300 s later, with the same number.
func TestR20_R21_R22_RefusalByTheRecords(t *testing.T) {
	for _, name := range []contract.RefusalName{notOn, foreign, unknownID} {
		for how, carry := range carriages {
			t.Run(string(name)+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					w.wantState("registered")
					w.heard()
					text, data := carry(name)
					w.refuse(registration, text, data)
					w.change(1)
					w.wantState("refused")
					w.wantHeard("custody "+string(name), "lost "+string(name))
					if a, b := w.check(CheckSession), w.check(CheckRefusal); a != "failing custody-ended" || b != "failing "+string(name) {
						t.Fatalf("checks %s, %s", a, b)
					}
					s := w.status()
					if s.Origin != "" || s.Credential != nil || s.AcceptedRegistration != nil || s.LastRefusal.Name != string(name) || !s.LastRefusal.Standing {
						t.Fatalf("status %+v", s)
					}
					if want := time.Now().Add(hold); s.NextAttemptAt.Sub(want).Abs() > time.Second {
						t.Fatalf("next attempt at %v, want %v", s.NextAttemptAt, want)
					}
					w.session.Kick()
					w.session.FactsChanged()
					time.Sleep(hold - time.Second)
					w.wantSequences(0, 1)
					w.on(registration, nil)
					time.Sleep(2 * time.Second)
					w.wantSequences(0, 1, 1)
					w.wantHeard("registered 1 first=true", "configuration stated "+testOrigin)
					if n, _ := w.opened(); n != 1 {
						t.Fatalf("%d sockets", n)
					}
					if got := w.check(CheckRefusal); got != "ok" {
						t.Fatalf("check %s", got)
					}
				})
			})
		}
	}
}

// R20, O19: a push that carries the relay block has the relay register at once, on the
// socket that stayed open.
func TestR20_APushEnablesTheRelayAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(registration, "relay-cluster-not-enabled", `{}`)
		w.wantState("refused")
		w.wantHeard("custody relay-cluster-not-enabled")
		time.Sleep(17 * time.Second)
		for _, idle := range []string{
			`{"configData":{"id":"c","data":{"name":"a"}}}`,
			`{"configData":{"id":"c","data":{"relay":null}}}`,
			`{"configData":{"id":"c","data":{"relay":{"origin":"http://x"}}}}`,
		} {
			if err := w.push(idle); err != nil {
				t.Fatalf("push of %s: %v", idle, err)
			}
		}
		w.wantSequences(0)
		w.on(registration, nil)
		if err := w.push(documentOf(testOrigin)); err != nil {
			t.Fatal(err)
		}
		w.wantState("registered")
		w.wantSequences(0, 0)
		w.wantHeard("registered 0 first=true", "configuration stated "+testOrigin)
		if n, _ := w.opened(); n != 1 {
			t.Fatalf("%d sockets", n)
		}
	})
}

// A push that went to no socket is made up for: on a new socket the relay waits for
// the rest of the time, but asks for the configuration.
func TestO19_AMissedPushIsMadeUpFor(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.refuse(registration, "relay-cluster-not-enabled", `{}`)
			w.wantState("refused")
			w.set(func() { w.origin = "" })
			w.on(registration, nil)
			time.Sleep(10 * time.Second)
			if enabled {
				w.set(func() { w.origin = testOrigin })
			}
			w.kill()
			time.Sleep(10 * time.Second)
			if !enabled {
				w.wantState("refused")
				w.wantSequences(0)
				time.Sleep(hold - 21*time.Second)
				w.wantSequences(0)
				w.set(func() { w.origin = testOrigin })
				time.Sleep(2 * time.Second)
			}
			w.wantState("registered")
			w.wantSequences(0, 0)
		})
	}
}

// R23: the socket is closed and the next registration carries a higher number.
func TestR23_SequenceNotAdvancing(t *testing.T) {
	for how, carry := range carriages {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.wantState("registered")
				w.heard()
				text, data := carry(sequence)
				w.on(registration, func(n int, r *typedsocket.Request) bool {
					if n == 2 {
						r.Refuse(text, []byte(data))
					}
					return n == 2
				})
				w.change(1)
				time.Sleep(5 * time.Second)
				w.wantSequences(0, 1, 2)
				if sent := w.of(registration); sent[1].socket != 1 || sent[2].socket != 2 {
					t.Fatalf("sent on sockets %d and %d", sent[1].socket, sent[2].socket)
				}
				w.wantHeard("custody relay-sequence-not-advancing", "lost relay-sequence-not-advancing",
					"registered 2 first=true", "configuration stated "+testOrigin)
			})
		})
	}
}

// R24: with an unchanged file nothing is tried for 300 s, with other bytes at once,
// and they are presented on the next socket.
func TestR24_StaleCredential(t *testing.T) {
	for _, where := range []string{contract.DefaultMethodExchangeIdentity, clientSession, registration} {
		for how, carry := range carriages {
			t.Run(where+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					w.wantState("registered")
					w.heard()
					text, data := carry(stale)
					w.refuse(where, text, data)
					want := []string{"custody relay-credential-generation-stale", "lost relay-credential-generation-stale"}
					if where == registration {
						w.change(1)
					} else {
						w.kill()
						want = []string{"lost socket-lost", "custody relay-credential-generation-stale"}
						time.Sleep(2 * time.Second)
					}
					w.wantState("waiting")
					w.wantHeard(want...)
					before := len(w.order())
					w.on(where, nil)
					time.Sleep(hold - 4*time.Second)
					if got := w.order(); len(got) != before || len(w.dialled()) > 2 {
						t.Fatalf("frames %q, dials at %v within 300 s of an unchanged file", got[before:], w.dialled())
					}
					time.Sleep(5 * time.Second)
					w.wantState("registered")
				})
			})
		}
	}
}

// R24: a file that holds another bearer is presented at once, on the next socket,
// whether it changed before the refusal or after it, and whether the watch or SIGHUP
// tells of it.
func TestR24_OtherBytesArePresentedAtOnce(t *testing.T) {
	rotate := func(w *world) { w.credential.set(bearerOf("0002"), nil) }
	for name, change := range map[string]func(w *world) (within time.Duration){
		"before the refusal": func(w *world) time.Duration {
			rotate(w)
			time.Sleep(credentialEvery + time.Second)
			w.change(1)
			return time.Second
		},
		"just before the refusal": func(w *world) time.Duration { rotate(w); w.change(1); return time.Second },
		"after it, seen by the watch": func(w *world) time.Duration {
			w.change(1)
			time.Sleep(100 * time.Second)
			rotate(w)
			return credentialEvery
		},
		"after it, told by SIGHUP": func(w *world) time.Duration {
			w.change(1)
			time.Sleep(100 * time.Second)
			rotate(w)
			w.session.Reload()
			return time.Millisecond
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.wantState("registered")
				w.on(registration, func(n int, r *typedsocket.Request) bool {
					if n == 2 {
						r.Refuse("relay-credential-generation-stale: rotated", []byte(`{"code":"relay-credential-generation-stale"}`))
					}
					return n == 2
				})
				within := change(w)
				time.Sleep(within)
				w.wantState("registered")
				exchanges := w.of(contract.DefaultMethodExchangeIdentity)
				last := exchanges[len(exchanges)-1]
				if want := `{"token":"` + bearerOf("0002") + `"}`; last.body != want || last.socket != 2 {
					t.Fatalf("exchange %s on socket %d", last.body, last.socket)
				}
				w.wantSequences(0, 1, 1)
			})
		})
	}
}

// R24: a file that is written anew with the same bytes, or with bytes that are no
// bearer, is no other credential.
func TestR24_TheSameBytesAreNoChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(registration, "relay-credential-generation-stale", `{}`)
		time.Sleep(time.Second)
		dials := len(w.dialled())
		w.credential.set("", &CredentialError{Name: CredentialLineEnd})
		time.Sleep(10 * time.Second)
		w.credential.set(bearerOf("0001"), nil)
		w.session.Reload()
		time.Sleep(hold - 13*time.Second)
		if len(w.dialled()) != dials {
			t.Fatalf("dialled at %v", w.dialled())
		}
		w.credential.set(bearerOf("0002"), nil)
		w.on(registration, nil)
		w.session.Reload()
		w.wantState("registered")
	})
}

// R24: the name is heard on any own call, and of forwarded answers as code alone.
func TestR24_HeardOnAnyCall(t *testing.T) {
	text := "relay-credential-generation-stale: no longer current"
	for name, test := range map[string]struct {
		hear func(w *world)
		ends bool
	}{
		"own call, text":                 {func(w *world) { w.call("getClusterVpnNetwork", text, `{}`) }, true},
		"own call, code":                 {func(w *world) { w.call("getClusterVpnNetwork", "no", `{"code":"relay-credential-generation-stale"}`) }, true},
		"own call, another custody name": {func(w *world) { w.call("getClusterVpnNetwork", "relay-sequence-not-advancing", `{}`) }, true},
		"own call, inside words":         {func(w *world) { w.call("getClusterVpnNetwork", "because "+text, `{}`) }, false},
		"own call, as reason":            {func(w *world) { w.call("getClusterVpnNetwork", "no", `{"reason":"relay-credential-generation-stale"}`) }, false},
		"own call, unknown name": {func(w *world) {
			w.call("getClusterVpnNetwork", "relay-not-registered", `{"code":"relay-not-registered"}`)
		}, false},
		"forwarded, code": {func(w *world) {
			w.session.HeardForwarded(w.live, []byte(`{"code":"relay-credential-generation-stale","more":1}`))
		}, true},
		"forwarded, another name":  {func(w *world) { w.session.HeardForwarded(w.live, []byte(`{"code":"relay-node-unknown"}`)) }, false},
		"forwarded, no object":     {func(w *world) { w.session.HeardForwarded(w.live, []byte(`"relay-credential-generation-stale"`)) }, false},
		"forwarded, none":          {func(w *world) { w.session.HeardForwarded(w.live, nil) }, false},
		"on a socket of yesterday": {func(w *world) { w.session.listening(nil)(&typedsocket.RemoteError{Text: text}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.wantState("registered")
				w.heard()
				test.hear(w)
				got := w.heard()
				if ends := len(got) > 0 && strings.HasPrefix(got[0], "custody "); ends != test.ends {
					t.Fatalf("hooks said %q", got)
				}
				if !test.ends && w.status().State != "registered" {
					t.Fatalf("state %s", w.status().State)
				}
			})
		})
	}
}

// call calls as a duty does, and has Cloudly refuse.
func (w *world) call(method, text, data string) {
	w.refuse(method, text, data)
	w.note.Lock()
	sock := w.live
	w.note.Unlock()
	if _, err := w.session.Call(context.Background(), sock, method, []byte(`{}`), typedsocket.CallOptions{}); err == nil {
		w.t.Error("a refused call has no error")
	}
}

// R24: a name that is heard on the socket before means nothing for the one of today,
// and ends no custody.
func TestR24_AnOldSocketEndsNoCustody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		old := w.live
		w.kill()
		time.Sleep(2 * time.Second)
		w.wantState("registered")
		w.heard()
		w.session.HeardForwarded(old, []byte(`{"code":"relay-credential-generation-stale"}`))
		w.session.listening(old)(&typedsocket.RemoteError{Text: "relay-cluster-not-enabled"})
		w.wantHeard()
	})
}

// R25: a refusal that is none of the five keeps custody.
func TestR25_OtherRefusalsKeepCustody(t *testing.T) {
	for _, text := range []string{
		"relay-verification-failed: unknown", "relay-not-enabled", "relay-cluster-not-enabled-yet: x", " relay-cluster-not-enabled", "Relay-Node-Foreign", "",
		"Internal server error",
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.wantState("registered")
			w.heard()
			w.refuse(registration, text, `{}`)
			w.kill()
			time.Sleep(10 * time.Minute)
			w.wantHeard("lost socket-lost")
			if got := w.check(CheckRefusal); got != "ok" {
				t.Fatalf("%q: check %s", text, got)
			}
			if got := w.check(CheckSession); got != "failing registration-refused" {
				t.Fatalf("%q: check %s", text, got)
			}
		})
	}
}

// Custody ends synchronously: what runs on the old authority was told to end before
// the hook is called, nothing is sent or served until it returns.
func TestCustodyEndsBeforeAnythingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var atDrop, served, afterDrop []string
		release := make(chan struct{})
		w := newWorld(t, func(c *Config, w2 *world) {
			c.Handler = typedsocket.HandlerFunc(func(r *typedsocket.Request) {
				served = append(served, r.Method())
				r.Answer([]byte("{}"))
			})
			c.Pulls = append(c.Pulls, func(ctx context.Context, sock *typedsocket.Socket) error {
				<-ctx.Done()
				w2.say("pull ended")
				return ctx.Err()
			})
			c.Hooks.OnCustodyEnded = func(name contract.RefusalName) {
				w2.say("custody %s", name)
				atDrop = w2.order()
				<-release
				afterDrop = w2.order()
			}
		})
		w.wantState("registered")
		w.heard()
		w.refuse(registration, "relay-credential-generation-stale", `{}`)
		w.credential.set(bearerOf("0002"), nil)
		time.Sleep(credentialEvery)
		w.change(1)
		w.settle()
		told := w.heard()
		slices.Sort(told)
		if want := []string{"custody relay-credential-generation-stale", "pull ended"}; !slices.Equal(told, want) {
			t.Fatalf("hooks said %q, want %q", told, want)
		}
		// Cloudly goes on sending; what it sends is refused, not served.
		_, err := w.socket().Call(context.Background(), "applyClusterVpnNetwork", []byte(`{}`), typedsocket.CallOptions{})
		if refused, ok := err.(*typedsocket.RemoteError); !ok || !strings.HasPrefix(refused.Text, "relay-not-ready") {
			t.Fatalf("during the drop: %v", err)
		}
		w.session.Kick()
		time.Sleep(5 * time.Second)
		close(release)
		w.on(registration, nil)
		w.wantState("registered")
		if !slices.Equal(atDrop, afterDrop) || len(served) != 0 {
			t.Fatalf("sent during the drop: %q; served %q", afterDrop[len(atDrop):], served)
		}
	})
}

// R24: a custody name on a pull ends custody as on any own call.
func TestR24_HeardOnAPull(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(contract.DefaultMethodGetConfiguration, "relay-node-foreign: x", `{}`)
		w.wantState("refused")
		w.wantHeard("registered 0 first=true", "custody relay-node-foreign", "lost relay-node-foreign")
	})
}

// A name heard while a registration is in flight: its answer revives nothing.
func TestALateAcceptanceRevivesNothing(t *testing.T) {
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
		w.settle()
		w.call("getClusterVpnNetwork", "relay-cluster-not-enabled", `{}`)
		w.wantHeard("custody relay-cluster-not-enabled", "lost relay-cluster-not-enabled")
		w.set(func() { w.origin = "" })
		w.standard(<-held)
		time.Sleep(hold - 10*time.Second)
		w.wantHeard()
		w.wantState("refused")
		w.wantSequences(0, 1)
		w.set(func() { w.origin = testOrigin })
		time.Sleep(20 * time.Second)
		w.wantSequences(0, 1, 2)
		w.wantHeard("registered 2 first=true", "configuration stated "+testOrigin)
	})
}

// There is never a second socket beside the first, not even while the first takes
// its time to close.
func TestNeverTwoSockets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mute atomic.Bool
		w := newWorld(t, func(_ *Config, w *world) {
			w.wrap = func(c net.Conn) net.Conn { return &mutable{c, &mute} }
		})
		w.refuse(registration, "relay-node-unknown", `{}`)
		w.wantState("refused")
		w.on(registration, nil)
		mute.Store(true) // so the closing handshake has to be given up
		w.credential.set(bearerOf("0002"), nil)
		w.session.Reload()
		w.wantState("dialing")
		time.Sleep(time.Second)
		if n := len(w.dialled()); n != 1 {
			t.Fatalf("%d dials while the first socket closes", n)
		}
		mute.Store(false)
		time.Sleep(5 * time.Second)
		w.wantState("registered")
		if w.set(func() {}); w.maxConns != 1 {
			t.Fatalf("%d connections at once", w.maxConns)
		}
	})
}

// R24: the bytes that count as presented are those of the socket, not those of a later
// exchange on it, so a rotation is seen.
func TestR24_ARenewedIdentityDoesNotHideARotation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lifeOf(30 * time.Minute)
		w.wantState("registered")
		w.credential.set(bearerOf("0002"), nil)
		time.Sleep(25 * time.Minute)
		w.change(1)
		w.settle()
		if got := w.of(exchangeMethod); len(got) != 2 || !strings.Contains(got[1].body, bearerOf("0002")) {
			t.Fatalf("exchanges %v", got)
		}
		w.on(registration, func(n int, r *typedsocket.Request) bool {
			if n == 3 {
				r.Refuse("relay-credential-generation-stale", nil)
			}
			return n == 3
		})
		w.change(2)
		time.Sleep(time.Second)
		w.wantState("registered")
		w.wantSequences(0, 1, 2, 2)
	})
}
