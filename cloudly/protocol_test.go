package cloudly

import (
	"fmt"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

const (
	clientSession = contract.MethodRegisterCloudlyClientSession
	registration  = contract.MethodRegisterClusterRelay
)

func refusalData(reason string) string {
	return fmt.Sprintf(`{"code":"protocol-incompatible","reason":%q,"refusing":{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"},`+
		`"refused":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}}`, reason)
}

// R08, R09: each reason of a protocol refusal is reported, custody and number stay, and
// the next offer is made exactly 300 s later.
func TestR08_R09_ProtocolRefusal(t *testing.T) {
	for _, method := range []string{contract.DefaultMethodExchangeIdentity, clientSession, registration} {
		for _, reason := range []string{"major-mismatch", "peer-below-minimum", "self-below-peer-minimum"} {
			t.Run(method+"/"+reason, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					w.refuse(method, "protocol-incompatible: "+reason, refusalData(reason))
					time.Sleep(contract.RefusedOfferRetryInterval - time.Millisecond)
					if n := len(w.of(method)); n != 1 {
						t.Fatalf("%d offers before 300 s", n)
					}
					if got := w.check(CheckRefusal); got != "failing "+reason {
						t.Fatalf("check %s", got)
					}
					r := w.status().LastRefusal
					if r == nil || r.Name != "protocol-incompatible" || r.Reason != reason || !r.Standing {
						t.Fatalf("last refusal %+v", r)
					}
					if peer := w.status().PeerOffer; *peer != (Offer{"33.0.0", "33.0.0"}) {
						t.Fatalf("peer offer %+v", peer)
					}
					// Nothing shortens the wait.
					w.session.Kick()
					w.session.FactsChanged()
					w.credential.set(bearerOf("0002"), nil)
					w.session.Reload()
					time.Sleep(time.Microsecond)
					if n := len(w.of(method)); n != 1 {
						t.Fatalf("%d offers before 300 s after being asked to hurry", n)
					}
					w.on(method, nil)
					time.Sleep(time.Millisecond)
					if n := len(w.of(method)); n != 2 {
						t.Fatalf("%d offers right after 300 s", n)
					}
					w.wantState("registered")
					w.wantHeard("registered 0 first=true", "configuration stated "+testOrigin)
					if got := w.check(CheckRefusal); got != "ok" || w.status().LastRefusal.Standing {
						t.Fatalf("check %s after the acceptance", got)
					}
				})
			})
		}
	}
}

// R10: an acceptance whose offer does not go with ours is a refused hop.
func TestR10_TheAnswersOfferIsNegotiatedFromOurSide(t *testing.T) {
	for _, method := range []string{clientSession, registration} {
		for offer, reason := range map[contract.Offer]string{
			{InterfacesVersion: "33.0.0", MinimumPeerVersion: "33.0.0"}:   "major-mismatch",
			{InterfacesVersion: "31.9.9", MinimumPeerVersion: "31.0.0"}:   "major-mismatch",
			{InterfacesVersion: "32.60.0", MinimumPeerVersion: "32.45.0"}: "self-below-peer-minimum",
		} {
			t.Run(method+"/"+offer.InterfacesVersion, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					w.on(method, func(n int, r *typedsocket.Request) bool {
						if n > 1 {
							return false
						}
						if method == clientSession {
							r.Answer(contract.ClientSessionAnswer{Protocol: offer}.AppendJSON(nil))
							return true
						}
						a := w.acceptance(0)
						a.Protocol = offer
						r.Answer(a.AppendJSON(nil))
						return true
					})
					time.Sleep(contract.RefusedOfferRetryInterval - time.Millisecond)
					if n := len(w.of(method)); n != 1 {
						t.Fatalf("%d offers before 300 s", n)
					}
					if got := w.check(CheckRefusal); got != "failing "+reason {
						t.Fatalf("check %s", got)
					}
					if peer := w.status().PeerOffer; peer.InterfacesVersion != offer.InterfacesVersion {
						t.Fatalf("peer offer %+v", peer)
					}
					time.Sleep(2 * time.Millisecond)
					w.wantState("registered")
					// Cloudly has accepted, so its number is used.
					want := []int64{0}
					if method == registration {
						want = []int64{0, 1}
					}
					w.wantSequences(want...)
					w.wantHeard(fmt.Sprintf("registered %d first=true", want[len(want)-1]), "configuration stated "+testOrigin)
				})
			})
		}
	}
	// Below our minimum within one major.
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config, w *world) {
			c.Offer = contract.Offer{InterfacesVersion: "32.44.0", MinimumPeerVersion: "32.40.0"}
			w.offer = contract.Offer{InterfacesVersion: "32.39.9", MinimumPeerVersion: "32.0.0"}
		})
		w.on(clientSession, func(_ int, r *typedsocket.Request) bool {
			r.Answer(contract.ClientSessionAnswer{Protocol: w.offer}.AppendJSON(nil))
			return true
		})
		time.Sleep(time.Second)
		if got := w.check(CheckRefusal); got != "failing peer-below-minimum" {
			t.Fatalf("check %s", got)
		}
	})
}

// R10: what cannot be read as a protocol refusal is a plain failure, with the short
// wait and not the long one.
func TestR10_AnUnreadableRefusalIsNone(t *testing.T) {
	for name, data := range map[string]string{
		"extra key":     `{"code":"protocol-incompatible","reason":"major-mismatch","refusing":{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"},"refused":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"},"more":1}`,
		"no reason":     `{"code":"protocol-incompatible","refusing":{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"},"refused":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}}`,
		"other reason":  refusalData("because"),
		"other code":    `{"code":"protocol-incompatibel","reason":"major-mismatch","refusing":{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"},"refused":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}}`,
		"text alone":    `{}`,
		"no offer read": `{"code":"protocol-incompatible","reason":"major-mismatch","refusing":{},"refused":{}}`,
	} {
		for _, method := range []string{clientSession, registration} {
			t.Run(name+"/"+method, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					w.refuse(method, "protocol-incompatible: major-mismatch", data)
					time.Sleep(10 * time.Second)
					if n := len(w.of(method)); n < 3 {
						t.Fatalf("%d attempts in 10 s", n)
					}
					if got := w.check(CheckRefusal); got != "ok" {
						t.Fatalf("check %s", got)
					}
					if got := w.heard(); len(got) != 0 {
						t.Fatalf("hooks said %q", got)
					}
				})
			})
		}
	}
}

// R09: a protocol refusal of a repeated registration changes nothing: the session
// stays, and the offer is made again after 300 s, on whatever socket.
func TestR09_ARefusedHopChangesNoSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		w.heard()
		w.refuse(registration, "protocol-incompatible: x", refusalData("major-mismatch"))
		w.change(1)
		time.Sleep(time.Second)
		w.wantState("registered")
		if a, b := w.check(CheckSession), w.check(CheckRefusal); a != "ok" || b != "failing major-mismatch" {
			t.Fatalf("checks %s, %s", a, b)
		}
		w.wantHeard()
		w.change(2)
		time.Sleep(298 * time.Second)
		w.wantSequences(0, 1)
		w.on(registration, nil)
		time.Sleep(2 * time.Second)
		w.wantSequences(0, 1, 1)
		w.wantHeard("registered 1 first=false", "configuration stated "+testOrigin)
	})
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		w.refuse(registration, "protocol-incompatible: x", refusalData("major-mismatch"))
		w.change(1)
		time.Sleep(100 * time.Second)
		w.on(registration, nil)
		w.kill()
		time.Sleep(199 * time.Second)
		if n := len(w.of(clientSession)); n != 1 {
			t.Fatalf("offered %d times within 300 s", n)
		}
		time.Sleep(2 * time.Second)
		w.wantState("registered")
	})
}

// R25, contract §4: a protocol refusal drops nothing.
func TestR25_AProtocolRefusalKeepsCustody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.wantState("registered")
		w.heard()
		w.refuse(clientSession, "protocol-incompatible: x", refusalData("peer-below-minimum"))
		w.kill()
		time.Sleep(time.Hour)
		w.wantHeard("lost socket-lost")
		if got := w.status(); got.Credential == nil || got.Origin != testOrigin {
			t.Fatalf("status %+v", got)
		}
		if n := len(w.of(clientSession)); n != 1+12 {
			t.Fatalf("%d offers in an hour", n)
		}
		w.on(clientSession, nil)
		time.Sleep(301 * time.Second)
		w.wantHeard("registered 1 first=true", "configuration stated "+testOrigin)
	})
}

// R07: an own offer that does not hold ends the start.
func TestR07_OwnOfferIsJudgedBeforeAnythingElse(t *testing.T) {
	for _, offer := range []contract.Offer{
		{InterfacesVersion: "32.44.0", MinimumPeerVersion: "32.45.0"},
		{InterfacesVersion: "32.44.0", MinimumPeerVersion: "31.0.0"},
		{InterfacesVersion: "32.44", MinimumPeerVersion: "32.0.0"},
		{},
	} {
		c := Config{URL: "https://cloudly.example", Credential: &fakeCredential{}, Offer: offer,
			Facts: func() contract.RelayFacts { return contract.RelayFacts{} }}
		if c.Validate() == nil {
			t.Errorf("%v was taken", offer)
		}
		if err := New(c).Run(t.Context()); err == nil {
			t.Errorf("ran with %v", offer)
		}
	}
}

func TestConfigIsValidated(t *testing.T) {
	good := Config{URL: "https://cloudly.example:8443", Credential: &fakeCredential{}, Offer: ownOffer,
		Facts: func() contract.RelayFacts { return contract.RelayFacts{} }}
	for name, change := range map[string]func(*Config){
		"https":           func(c *Config) {},
		"http 127.0.0.1":  func(c *Config) { c.URL = "http://127.0.0.1:8080" },
		"http [::1]":      func(c *Config) { c.URL = "http://[::1]:8080" },
		"path":            func(c *Config) { c.SocketPath = "/socket" },
		"!http":           func(c *Config) { c.URL = "http://cloudly.example" },
		"!http 10.0.0.1":  func(c *Config) { c.URL = "http://10.0.0.1" },
		"!slash":          func(c *Config) { c.URL = "https://cloudly.example/" },
		"!user":           func(c *Config) { c.URL = "https://u@cloudly.example" },
		"!path":           func(c *Config) { c.SocketPath = "socket" },
		"!no credential":  func(c *Config) { c.Credential = nil },
		"!no facts":       func(c *Config) { c.Facts = nil },
		"!offer":          func(c *Config) { c.Offer.MinimumPeerVersion = "33.0.0" },
		"!http localhost": func(c *Config) { c.URL = "http://localhost:1" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); (err == nil) == (name[0] == '!') {
			t.Errorf("%s: %v", name, err)
		}
	}
}
