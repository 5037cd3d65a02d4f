package simulate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

const goodSession = `{"controller":{"kind":"cloudly"},"clusterId":"cluster-a","nodeId":"node-a","runtimeNamespace":"default",` +
	`"credentialGeneration":1,"sessionEpoch":1}`

func sessionAnswer(session string) string {
	return `{"session":` + session + `,"protocol":` + string(DefaultOffer().AppendJSON(nil)) + `}`
}

// unbound is how the node words that contract's reader refused an answer.
func unbound(t *testing.T, answer string) string {
	read := func(b []byte) (contract.SessionBinding, error) { return contract.ReadSessionBinding(b, "node-a") }
	return "answer to the registration: " + unread(t, answer, read, []byte(answer)).text
}

// Each wrong answer to a registration is refused by the node, and noted.
func TestRegistrationAnswerIsJudged(t *testing.T) {
	good := sessionAnswer(goodSession)
	change := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	newer := `{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"}`
	const what = "answer to the registration: invalid registerPalletRuntimeSession answer: "
	for _, test := range []struct{ name, answer, want string }{
		{"good", good, ""},
		{"spaced", change(`{"kind":"cloudly"}`, ` { "kind" : "cloudly" } `), ""},
		{"no offer", change(`"protocol"`, `"novel"`), unread(t, "no offer", contract.ReadOffer, []byte(change(`"protocol"`, `"novel"`))).text},
		{"offer of another major, before the rest", strings.Replace(change(string(DefaultOffer().AppendJSON(nil)), newer), `"session"`, `"novel"`, 1),
			contract.ProtocolRefusal{Reason: contract.MajorMismatch, Refusing: DefaultOffer(),
				Refused: contract.Offer{InterfacesVersion: "33.0.0", MinimumPeerVersion: "33.0.0"}}.Error()},
		{"another node", change("node-a", "node-b"), unbound(t, change("node-a", "node-b"))},
		{"onebox", change("cloudly", "onebox"), unbound(t, change("cloudly", "onebox"))},
		{"another member", change(`{"session"`, `{"novel":1,"session"`), what + "body: has a member that is not known"},
		{"another member of the session", change(`{"controller"`, `{"novel":1,"controller"`), what + "body: has a member that is not known"},
		{"another generation", change(`"credentialGeneration":1`, `"credentialGeneration":2`), what + "session.credentialGeneration: is not the one that was sent"},
		{"epoch 0", change(`"sessionEpoch":1`, `"sessionEpoch":0`), what + "sessionEpoch: is not a counter"},
		{"another namespace", change("default", "other"), what + "session: is not in the node's scope"},
		{"another controller", change(`"kind":"cloudly"`, `"kind":"cloudly","id":"x"`), what + "session: is not in the node's scope"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := newHop(t)
				h.answer(registerNode, func(r *typedsocket.Request) { r.Answer([]byte(good)) })
				p := h.pallet(nil, "node-a", nil)
				registered(t, p, 0)
				p.Restart() // so that the answer is not that of a replay
				h.answer(registerNode, func(r *typedsocket.Request) { r.Answer([]byte(good)) })
				registered(t, p, 1)
				p.mu.Lock()
				p.last = nil
				p.mu.Unlock()
				h.answer(registerNode, func(r *typedsocket.Request) { r.Answer([]byte(test.answer)) })
				err := p.Register(soon(t))
				if test.want == "" {
					if err != nil {
						t.Error(err)
					}
					wantViolations(t, p.Violations())
					return
				}
				if err == nil || err.Error() != test.want {
					t.Errorf("got %v, want %s", err, test.want)
				}
				wantViolations(t, p.Violations(), RegistrationAnswer)
				if binding, _ := p.Binding(); string(binding.Received) != goodSession {
					t.Errorf("a refused answer changes the binding to %s", []byte(binding.Received))
				}
			})
		})
	}
}

func TestReplayAnsweredWithAnotherBinding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHop(t)
		h.answer(registerNode, func(r *typedsocket.Request) { r.Answer([]byte(sessionAnswer(goodSession))) })
		p := h.pallet(nil, "node-a", nil)
		registered(t, p, 0)
		other := strings.Replace(goodSession, `"sessionEpoch":1`, `"sessionEpoch":2`, 1)
		h.answer(registerNode, func(r *typedsocket.Request) { r.Answer([]byte(sessionAnswer(other))) })
		if err := p.Register(soon(t)); err != nil {
			t.Error(err)
		}
		if binding, _ := p.Binding(); string(binding.Received) != other {
			t.Errorf("the node holds %s", []byte(binding.Received))
		}
		wantViolations(t, p.Violations(), ReplayAnswer)
	})
}

func TestRegistrationIsWhatCloudlyReads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHop(t)
		bodies := make(chan NodeRegistration, 1)
		h.answer(registerNode, func(r *typedsocket.Request) {
			body, err := readNodeRegistration(r.Body())
			if err != nil {
				t.Error(err)
			}
			bodies <- body
			r.Drop()
		})
		p := h.pallet(nil, "node-a", func(cfg *PalletConfig) { cfg.ResolvedAuthorities = []string{"secrets"} })
		got := <-bodies
		if got.NodeID != "node-a" || got.Credential != (NodeCredential{1, "palletToken_test"}) || got.Nonce != p.Nonce() ||
			len(got.Authorities) != 1 || got.Authorities[0] != "secrets" || !contract.IsInstanceNonce(got.Nonce) {
			t.Errorf("got %+v", got)
		}
	})
}

// attempts lets every registration end in the same way and returns when they
// came, until the time is over.
func attempts(t *testing.T, d time.Duration, end func(*typedsocket.Request)) (came []time.Duration, p *Pallet) {
	t.Helper()
	h := newHop(t)
	began := time.Now()
	h.answer(registerNode, func(r *typedsocket.Request) {
		came = append(came, time.Since(began))
		end(r)
	})
	p = h.pallet(nil, "node-a", func(cfg *PalletConfig) { cfg.Random = func() float64 { return 0.999999 } })
	time.Sleep(d)
	p.Close()
	synctest.Wait()
	return came, p
}

func rounded(came []time.Duration) []time.Duration {
	list := []time.Duration{}
	for _, d := range came {
		list = append(list, d.Round(time.Second))
	}
	return list
}

func seconds(list ...int) []time.Duration {
	durations := []time.Duration{}
	for _, s := range list {
		durations = append(durations, time.Duration(s)*time.Second)
	}
	return durations
}

func TestRegistrationIsTriedAgain(t *testing.T) {
	protocol := scriptedRefusal(contract.MajorMismatch, DefaultOffer(), []byte("{}"))
	for _, test := range []struct {
		name    string
		end     func(*typedsocket.Request)
		want    []time.Duration
		sockets int
	}{
		{"refused: on the same socket, doubling to a minute", func(r *typedsocket.Request) { r.Refuse("relay-not-ready", nil) },
			seconds(0, 1, 3, 7, 15, 31, 63, 123, 183, 243), 1},
		{"protocol refusal: after 300 s on a new socket", func(r *typedsocket.Request) { r.Refuse(protocol.text, protocol.data) }, seconds(0), 1},
		{"no answer: on a new socket after 30 s", func(r *typedsocket.Request) { r.Drop() }, seconds(0, 31, 63, 97, 135, 181, 243), 7},
		{"closed at once: on a new socket", func(r *typedsocket.Request) {
			s := r.Socket()
			r.Drop()
			s.Close(typedsocket.CloseRestart, "restart")
		}, seconds(0, 1, 3, 7, 15, 31, 63, 123, 183, 243), 10},
		{"registered and died at once", func(r *typedsocket.Request) {
			s := r.Socket()
			r.Answer([]byte(sessionAnswer(goodSession)))
			s.Close(typedsocket.CloseRestart, "restart")
		}, seconds(0, 1, 3, 7, 15, 31, 63, 123, 183, 243), 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				came, p := attempts(t, 299*time.Second, test.end)
				got := rounded(came)
				if len(got) != len(test.want) {
					t.Fatalf("attempts %v, want %v", got, test.want)
				}
				for i := range got {
					if got[i] != test.want[i] {
						t.Fatalf("attempts %v, want %v", got, test.want)
					}
				}
				if p.Dials() != test.sockets {
					t.Errorf("%d sockets, want %d", p.Dials(), test.sockets)
				}
			})
		})
	}
}

// R09: a simulated node whose offer is refused makes the next one after 300,000 ms, on
// another socket.
func TestR09_ProtocolRefusalOfANode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		s.Script(registerNode, RefuseProtocol(contract.PeerBelowMinimum))
		p := newHop(t).under(s).pallet(s, "node-a", nil)
		began := time.Now()
		if _, err := p.WaitRegistered(timeout(t, 299*time.Second), 0); err == nil {
			t.Error("offered again too soon")
		}
		registered(t, p, 1)
		if took := time.Since(began); took != contract.RefusedOfferRetryInterval || p.Dials() != 2 {
			t.Errorf("offered again after %s on socket %d", took, p.Dials())
		}
	})
}

// A push that overtakes the goroutine which waits for the registration's answer
// is not taken for one under a foreign session.
func TestPushRightBehindTheRegistration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHop(t)
		pushed := make(chan error, 1)
		h.answer(registerNode, func(r *typedsocket.Request) {
			s := r.Socket()
			go func() {
				answer, err := s.Call(t.Context(), "applyRuntimeAssignment", []byte(`{"session":`+goodSession+`}`), typedsocket.CallOptions{})
				if err == nil {
					answer.Release()
				}
				pushed <- err
			}()
			synctest.Wait() // the push arrives before the answer
			r.Answer([]byte(sessionAnswer(goodSession)))
		})
		p := h.pallet(nil, "node-a", nil)
		if err := <-pushed; err != nil {
			t.Errorf("the push: %v", explain(err))
		}
		registered(t, p, 0)
		wantViolations(t, p.Violations())
	})
}
