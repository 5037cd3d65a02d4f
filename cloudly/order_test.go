package cloudly

import (
	"slices"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// R12: nothing but the exchange precedes registerCloudlyClientSession, and each
// step waits for the answer to the one before.
func TestR12_OrderOfFramesOnANewSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.settle()
		want := []string{
			"1 getIdentityByToken", "1 registerCloudlyClientSession", "1 registerClusterRelay", "1 getClusterConfig",
		}
		if got := w.order(); !slices.Equal(got, want) {
			t.Fatalf("frames %q, want %q", got, want)
		}
		w.wantHeard("registered 0 first=true", "configuration stated "+testOrigin)
		exchange := w.of("getIdentityByToken")[0].body
		if want := `{"token":"` + bearerOf("0001") + `"}`; exchange != want {
			t.Errorf("exchange %s, want %s", exchange, want)
		}
		session := w.of("registerCloudlyClientSession")[0].body
		if want := `{"identity":{"jwt":"` + testJWT + `.0001"},"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}}`; session != want {
			t.Errorf("client session %s, want %s", session, want)
		}
		time.Sleep(time.Hour)
		if got := w.order(); len(got) != len(want) {
			t.Errorf("more frames while nothing happened: %q", got)
		}
		w.kill()
		time.Sleep(2 * time.Second)
		if got := w.order()[4:]; !slices.Equal(got, []string{
			"2 getIdentityByToken", "2 registerCloudlyClientSession", "2 registerClusterRelay", "2 getClusterConfig",
		}) {
			t.Fatalf("frames on the second socket %q", got)
		}
	})
}

// R12: as long as the exchange, the authentication or the registration is not answered,
// nothing is sent behind it.
func TestR12_EachStepWaitsForItsAnswer(t *testing.T) {
	for _, method := range []string{"getIdentityByToken", "registerCloudlyClientSession", "registerClusterRelay"} {
		t.Run(method, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				held := make(chan *typedsocket.Request, 1)
				w := newWorld(t)
				w.on(method, func(n int, r *typedsocket.Request) bool {
					if n == 1 {
						held <- r
					}
					return n == 1
				})
				time.Sleep(callWait - time.Second)
				if got := w.order(); got[len(got)-1] != "1 "+method {
					t.Fatalf("frames %q", got)
				}
				w.standard(<-held)
				w.wantState("registered")
				if got := w.order(); got[len(got)-1] != "1 getClusterConfig" {
					t.Fatalf("frames %q", got)
				}
			})
		})
	}
}

// R13: the request is exact and states what was bound when it is sent.
func TestR13_TheRegistrationStatesWhatWasBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		want := `{"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"},` +
			`"relay":{"version":"4.0.0","nodeId":"node-a","listenAddress":"10.0.4.7","listenPort":8443},"registrationSequence":0}`
		if got := w.of(contract.MethodRegisterClusterRelay)[0].body; got != want {
			t.Fatalf("registration\n\t%s, want\n\t%s", got, want)
		}
		w.session.FactsChanged()
		w.settle()
		if n := len(w.of(contract.MethodRegisterClusterRelay)); n != 1 {
			t.Fatalf("%d registrations although no fact changed", n)
		}
		hub := &contract.VPNHub{PublicKey: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", Address: "192.0.2.1", QUICPort: 4433}
		w.note.Lock()
		w.facts.VPNHub = hub
		w.note.Unlock()
		w.session.FactsChanged()
		w.session.FactsChanged()
		w.settle()
		sent := w.of(contract.MethodRegisterClusterRelay)
		if len(sent) != 2 {
			t.Fatalf("%d registrations after a fact changed", len(sent))
		}
		want = `{"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"},` +
			`"relay":{"version":"4.0.0","nodeId":"node-a","listenAddress":"10.0.4.7","listenPort":8443,` +
			`"vpnHub":{"publicKey":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","address":"192.0.2.1","quicPort":4433}},"registrationSequence":1}`
		if sent[1].body != want || sent[1].socket != 1 {
			t.Fatalf("second registration on socket %d\n\t%s, want\n\t%s", sent[1].socket, sent[1].body, want)
		}
		w.wantHeard("registered 0 first=true", "configuration stated "+testOrigin,
			"registered 1 first=false", "configuration stated "+testOrigin)
		// The same facts in other memory are the same facts.
		copied := *hub
		w.note.Lock()
		w.facts.VPNHub = &copied
		w.note.Unlock()
		w.session.FactsChanged()
		w.settle()
		if got := w.sequences(); !slices.Equal(got, []int64{0, 1}) {
			t.Fatalf("sequences %v", got)
		}
	})
}

// R14: facts that do not hold are never sent and use no number.
func TestR14_FactsThatDoNotHoldAreNotSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(_ *Config, w *world) { w.facts.ListenAddress = "127.0.0.1" })
		time.Sleep(10 * time.Second)
		if n := len(w.of(contract.MethodRegisterClusterRelay)); n != 0 {
			t.Fatalf("%d registrations", n)
		}
		if got := w.check(CheckSession); got != "failing facts-invalid" {
			t.Fatalf("check %s", got)
		}
		if r := w.status().LastRefusal; r != nil {
			t.Fatalf("refused by %+v, who was not asked", r)
		}
		w.note.Lock()
		w.facts.ListenAddress = "10.0.4.7"
		w.note.Unlock()
		time.Sleep(longestDelay)
		if got := w.sequences(); !slices.Equal(got, []int64{0}) {
			t.Fatalf("sequences %v", got)
		}
	})
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config, w *world) { c.AllowLoopback = true; w.facts.ListenAddress = "127.0.0.1" })
		w.on(contract.MethodRegisterClusterRelay, func(_ int, r *typedsocket.Request) bool {
			r.Answer(w.acceptance(0).AppendJSON(nil))
			return true
		})
		w.wantState("registered")
	})
}

// At most one registration is in flight: a fact that changes meanwhile follows.
func TestAtMostOneRegistrationInFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		held := make(chan *typedsocket.Request, 2)
		w := newWorld(t)
		w.on(contract.MethodRegisterClusterRelay, func(n int, r *typedsocket.Request) bool {
			held <- r
			return true
		})
		w.settle()
		for port := int64(1); port <= 5; port++ {
			w.note.Lock()
			w.facts.ListenPort = port
			w.note.Unlock()
			w.session.FactsChanged()
			w.settle()
		}
		if got := w.sequences(); !slices.Equal(got, []int64{0}) {
			t.Fatalf("sequences %v while the first is in flight", got)
		}
		w.standard(<-held)
		w.settle()
		if got := w.sequences(); !slices.Equal(got, []int64{0, 1}) {
			t.Fatalf("sequences %v after its answer", got)
		}
		w.standard(<-held)
		w.wantState("registered")
		time.Sleep(time.Minute)
		if got := w.sequences(); !slices.Equal(got, []int64{0, 1}) {
			t.Fatalf("sequences %v at the end", got)
		}
	})
}
