package simulate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// R70: each wrong acceptance is refused by the simulated ingress, and noted.
func TestR70_AcceptancesAreJudged(t *testing.T) {
	good := acceptedBy(relayOffer(), "7")
	change := func(old, new string) string { return replace(t, good, old, new) }
	newer := contract.Offer{InterfacesVersion: "33.0.0", MinimumPeerVersion: "33.0.0"}
	const what = "invalid registerClusterIngress answer: "
	for _, test := range []struct {
		name, answer, want string
		revision           int64
	}{
		{"good", good, "", 7},
		{"null", acceptedBy(relayOffer(), "null"), "", 0},
		{"no offer", change(`"protocol"`, `"novel"`), unread(t, "no offer", contract.ReadOffer, []byte(change(`"protocol"`, `"novel"`))).text, 0},
		{"offer of another major, before the rest", strings.Replace(acceptedBy(newer, "7"), "true", "false", 1),
			contract.ProtocolRefusal{Reason: contract.MajorMismatch, Refusing: DefaultOffer(), Refused: newer}.Error(), 0},
		{"O16: Cloudly's offer", acceptedBy(DefaultOffer(), "7"), what + "protocol: is not the relay's own offer", 0},
		{"not accepted", change("true", "false"), what + "accepted: is not true", 0},
		{"accepted in words", change("true", `"true"`), what + "accepted: is not true", 0},
		{"no revision", change(`"revision":7,`, ``), what + "revision: is missing", 0},
		{"revision 0", change(`:7`, `:0`), what + "revision: is not a counter", 0},
		{"another member", change(`"revision"`, `"bearer":"x","revision"`), what + "body: has a member that is not known", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				i, h, _ := ingressAlone(t, answers{}, nil)
				h.answer(registerIngress, func(r *typedsocket.Request) { r.Answer([]byte(test.answer)) })
				err := i.Register(soon(t))
				if i.AcceptedRevision() != test.revision {
					t.Errorf("revision %d", i.AcceptedRevision())
				}
				if test.want == "" {
					if err != nil {
						t.Error(err)
					}
					wantViolations(t, i.Violations())
					return
				}
				if err == nil || err.Error() != "answer to the registration: "+test.want {
					t.Errorf("got %v, want %s", err, test.want)
				}
				wantViolations(t, i.Violations(), RegistrationAnswer)
			})
		})
	}
}

func TestIngressRegistrationIsWhatTheContractReads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		i, _, _ := ingressAlone(t, answers{}, func(cfg *IngressConfig) {
			cfg.Capabilities, cfg.Version = contract.Raw(`{"tcp":true}`), "3.0.0"
		})
		body := i.Frames().Sent(registerIngress)[0].Body
		got, err := contract.ReadIngressRegistration(body)
		if err != nil || string(got.Bearer) != "ingress-bearer" || got.NodeID != "node-a" || got.Version != "3.0.0" ||
			string(got.Capabilities) != `{"tcp":true}` || got.Protocol != DefaultOffer() {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// ingressAttempts lets every registration end in the same way and returns when
// they came, until the time is over.
func ingressAttempts(t *testing.T, d time.Duration, end func(*typedsocket.Request)) ([]time.Duration, *Ingress) {
	t.Helper()
	var came []time.Duration
	h := newHop(t)
	began := time.Now()
	h.answer(registerIngress, func(r *typedsocket.Request) {
		came = append(came, time.Since(began))
		end(r)
	})
	h.answer(pullTable, func(r *typedsocket.Request) { r.Answer([]byte(`{"table":null}`)) })
	i := h.ingress(nil)
	time.Sleep(d)
	i.Close()
	synctest.Wait()
	return came, i
}

func refuseWith(data string) func(*typedsocket.Request) {
	return func(r *typedsocket.Request) { r.Refuse("x", []byte(data)) }
}

// R71: a simulated ingress obeys a refusal by name to the second, on the same socket
// when that is soon.
func TestR71_RefusedIngressesWait(t *testing.T) {
	protocol := scriptedRefusal(contract.MajorMismatch, DefaultOffer(), []byte("{}"))
	named := func(ms string) func(*typedsocket.Request) {
		return refuseWith(`{"code":"cluster-ingress-registration-refused","reason":"not-ready","retryAfterMs":` + ms + `}`)
	}
	for _, test := range []struct {
		name    string
		end     func(*typedsocket.Request)
		want    []time.Duration
		sockets int
		rule    Rule // of each attempt
	}{
		{"for 10 s: on the same socket", named("10000"), seconds(0, 10, 20, 30, 40, 50), 1, ""},
		{"for 20 s: on a new socket", named("20000"), seconds(0, 20, 40), 3, ""},
		{"the longest", named("300000"), seconds(0), 1, ""},
		{"without a name: doubling, on the same socket", refuseWith(`{"code":"relay-overloaded"}`), seconds(0, 1, 3, 7, 15, 31), 1, ""},
		{"too long a wait is no refusal by name", named("300001"), seconds(0, 1, 3, 7, 15, 31), 1, RefusalNotWhole},
		{"a protocol refusal that is not whole", refuseWith(`{"code":"protocol-incompatible"}`), seconds(0, 1, 3, 7, 15, 31), 1, RefusalNotWhole},
		{"a protocol refusal", refuseWith(string(protocol.data)), seconds(0), 1, ""},
		{"named, and the socket ends", func(r *typedsocket.Request) {
			s := r.Socket()
			named("8000")(r)
			s.Close(typedsocket.CloseRestart, "restart")
		}, seconds(0, 8, 16, 24, 32, 40, 48, 56), 8, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				came, i := ingressAttempts(t, 59*time.Second, test.end)
				got := rounded(came)
				if len(got) != len(test.want) {
					t.Fatalf("attempts %v, want %v", got, test.want)
				}
				for n := range got {
					if got[n] != test.want[n] {
						t.Fatalf("attempts %v, want %v", got, test.want)
					}
				}
				if i.Dials() != test.sockets {
					t.Errorf("%d sockets, want %d", i.Dials(), test.sockets)
				}
				want := []Rule{}
				if test.rule != "" {
					want = repeated(test.rule, len(got))
				}
				wantViolations(t, i.Violations(), want...)
			})
		})
	}
}

// R09: a simulated ingress whose offer is refused makes the next one after 300,000 ms,
// on another socket.
func TestR09_ProtocolRefusalOfAnIngress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		protocol := scriptedRefusal(contract.PeerBelowMinimum, DefaultOffer(), []byte("{}"))
		came, i := ingressAttempts(t, 301*time.Second, refuseWith(string(protocol.data)))
		if got := rounded(came); len(got) != 2 || got[1] != contract.RefusedOfferRetryInterval || i.Dials() != 2 {
			t.Errorf("attempts %v on %d sockets", got, i.Dials())
		}
	})
}

func TestIngressBeforeItsStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		if _, err := NewIngress(IngressConfig{}); err == nil {
			t.Error("without a wall clock")
		}
		if _, err := NewIngress(IngressConfig{Wall: time.Now, Offer: contract.Offer{InterfacesVersion: "1.0.0", MinimumPeerVersion: "2.0.0"}}); err == nil {
			t.Error("with an offer that is none")
		}
		if _, err := NewIngress(IngressConfig{Wall: time.Now, Traffic: []TrafficBucket{{DayUTC: "x"}}}); err == nil {
			t.Error("with a bucket that is none")
		}
		i, err := NewIngress(IngressConfig{Wall: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		_, held := i.Table()
		_, bound := i.Registered()
		if held || bound || i.Revision() != 0 || i.Dials() != 0 || len(i.Counters()) != 0 {
			t.Error("it holds something")
		}
		for name, call := range map[string]func() error{
			"body":     func() error { _, err := i.SendBody(t.Context(), "anything", []byte("{}")); return err },
			"register": func() error { return i.Register(t.Context()) },
			"pull":     func() error { _, err := i.Pull(t.Context()); return err },
		} {
			if err := call(); err != ErrNotRegistered {
				t.Errorf("%s: %v", name, err)
			}
		}
		i.StopReading()
		i.Close()
		i.Close()
		if err := i.Start(); err != ErrClosed {
			t.Errorf("started after its end: %v", err)
		}
	})
}
