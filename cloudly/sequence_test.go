package cloudly

import (
	"slices"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

func (w *world) wantSequences(want ...int64) {
	w.t.Helper()
	if got := w.sequences(); !slices.Equal(got, want) {
		w.t.Fatalf("sequences %v, want %v", got, want)
	}
}

// change makes a fact differ and says so.
func (w *world) change(port int64) {
	w.note.Lock()
	w.facts.ListenPort = port
	w.note.Unlock()
	w.session.FactsChanged()
}

// R16: a refusal uses no number, an acceptance does, a new process begins at 0.
func TestR16_SequenceFromZeroAndNotUsedByARefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.on(contract.MethodRegisterClusterRelay, func(n int, r *typedsocket.Request) bool {
			if n == 1 {
				r.Refuse("relay-verification-failed: nobody knows why", []byte(`{"code":"relay-verification-failed"}`))
			}
			return n == 1
		})
		time.Sleep(2 * time.Second)
		w.wantSequences(0, 0)
		w.wantHeard("registered 0 first=true", "configuration stated "+testOrigin)
		w.change(1)
		time.Sleep(time.Second)
		w.wantSequences(0, 0, 1)
		w.kill()
		time.Sleep(4 * time.Second)
		w.wantSequences(0, 0, 1, 2)
		if got := w.status(); got.NextSequence != 3 || got.AcceptedRegistrations != 3 {
			t.Fatalf("next %d after %d acceptances", got.NextSequence, got.AcceptedRegistrations)
		}
	})
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		w.wantSequences(0)
	})
}

// R16: a repeated registration that is refused without a name leaves the session, and
// is tried again on the same socket with the same number.
func TestR16_ARefusedRepetitionKeepsTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		w.on(contract.MethodRegisterClusterRelay, func(n int, r *typedsocket.Request) bool {
			if n < 5 {
				r.Refuse("not now", nil)
			}
			return n < 5
		})
		w.heard()
		w.change(1)
		time.Sleep(500 * time.Millisecond)
		w.wantState("registered")
		if got := w.check(CheckSession); got != "ok" {
			t.Fatalf("check %s", got)
		}
		if r := w.status().LastRefusal; r == nil || r.Name != "unnamed" || r.Standing {
			t.Fatalf("last refusal %+v", r)
		}
		time.Sleep(10 * time.Second)
		w.wantSequences(0, 1, 1, 1, 1)
		w.wantHeard("registered 1 first=false", "configuration stated "+testOrigin)
		if n, _ := w.opened(); n != 1 {
			t.Fatalf("%d sockets", n)
		}
		if got := w.published(); !slices.Equal(got, []string{
			"cloudly-registered", "cloudly-registration-refused registration-refused", "cloudly-registration-refused registration-refused", "cloudly-registered",
		}) {
			t.Fatalf("events %q", got)
		}
	})
}

// R17: after an answer that was lost or cannot be read, nobody knows whether the number
// was used: the relay takes the next one, on a new socket.
func TestR17_LostAnswerTakesTheNextNumberOnANewSocket(t *testing.T) {
	lose := map[string]func(w *world, r *typedsocket.Request) bool{
		"swallowed":   func(_ *world, r *typedsocket.Request) bool { r.Drop(); return true },
		"socket gone": func(w *world, r *typedsocket.Request) bool { r.Drop(); go r.Socket().Cut(1001, "gone"); return true },
		"no response": func(_ *world, r *typedsocket.Request) bool { r.Answer([]byte(`[]`)); return true },
		"bad origin": func(w *world, r *typedsocket.Request) bool {
			a := w.acceptance(0)
			a.Origin = "https://Relay.example/"
			r.Answer(a.AppendJSON(nil))
			return true
		},
		"no reference": func(w *world, r *typedsocket.Request) bool {
			r.Answer([]byte(`{"origin":"` + testOrigin + `","protocol":{"interfacesVersion":"32.50.0","minimumPeerVersion":"32.1.0"}}`))
			return true
		},
		"no offer": func(w *world, r *typedsocket.Request) bool {
			r.Answer([]byte(`{"origin":"` + testOrigin + `"}`))
			return true
		},
		"asks for retries for ever": func(_ *world, r *typedsocket.Request) bool { r.Retry(4*time.Minute, "later"); return true },
	}
	for name, script := range lose {
		t.Run("first/"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.on(contract.MethodRegisterClusterRelay, func(n int, r *typedsocket.Request) bool {
					return n == 1 && script(w, r)
				})
				time.Sleep(callBound + 10*time.Second)
				w.wantSequences(0, 1)
				sent := w.of(contract.MethodRegisterClusterRelay)
				if sent[0].socket != 1 || sent[1].socket != 2 {
					t.Fatalf("sent on sockets %d and %d", sent[0].socket, sent[1].socket)
				}
				w.wantHeard("registered 1 first=true", "configuration stated "+testOrigin)
				if _, atOnce := w.opened(); atOnce != 1 {
					t.Fatalf("%d sockets at once", atOnce)
				}
			})
		})
		t.Run("repeated/"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.wantState("registered")
				w.on(contract.MethodRegisterClusterRelay, func(n int, r *typedsocket.Request) bool {
					return n == 2 && script(w, r)
				})
				w.heard()
				w.change(1)
				time.Sleep(callBound + 10*time.Second)
				w.wantSequences(0, 1, 2)
				lost := "lost registration-unanswered"
				if name == "socket gone" {
					lost = "lost socket-lost"
				}
				got := w.heard()
				if len(got) == 3 && got[0] == "lost registration-unanswered" {
					lost = got[0] // which of the two is heard first is open
				}
				if want := []string{lost, "registered 2 first=true", "configuration stated " + testOrigin}; !slices.Equal(got, want) {
					t.Fatalf("hooks said %q, want %q", got, want)
				}
			})
		})
	}
}

// Unknown members of an acceptance are ignored unless asked for otherwise (O35).
func TestO35_EnvelopeOfTheAcceptance(t *testing.T) {
	answer := func(w *world, more string) []byte {
		b := w.acceptance(0).AppendJSON(nil)
		return append(append(b[:len(b)-1], more...), '}')
	}
	for _, test := range []struct {
		more     string
		strict   bool
		accepted bool
	}{
		{``, false, true}, {``, true, true},
		{`,"accepted":true`, false, true}, {`,"accepted":true`, true, true},
		{`,"accepted":false`, false, false}, {`,"accepted":false`, true, false},
		{`,"later":1`, false, true}, {`,"later":1`, true, false},
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, func(c *Config, _ *world) { c.StrictAnswers = test.strict })
			w.on(contract.MethodRegisterClusterRelay, func(_ int, r *typedsocket.Request) bool {
				r.Answer(answer(w, test.more))
				return true
			})
			time.Sleep(100 * time.Millisecond)
			if got := w.status().Registered; got != test.accepted {
				t.Errorf("%q, strict %v: registered %v", test.more, test.strict, got)
			}
		})
	}
}

// R19: the references are kept, and shown without anything secret.
func TestR19_ReferencesAreShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		s := w.status()
		digest := "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		if s.Origin != testOrigin || *s.Credential != (Reference{"cred-1", 1, digest}) || *s.AcceptedRegistration != (Reference{"reg-1", 1, digest}) {
			t.Fatalf("status %+v", s)
		}
		if *s.PeerOffer != (Offer{"32.50.0", "32.1.0"}) || s.Offer != (Offer{"32.44.0", "32.0.0"}) {
			t.Fatalf("offers %+v %+v", s.Offer, s.PeerOffer)
		}
		w.session.DropCustody("test")
		if s := w.status(); s.Origin != "" || s.Credential != nil || s.AcceptedRegistration != nil {
			t.Fatalf("status after a drop %+v", s)
		}
	})
}
