package simulate

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
)

const register = contract.MethodRegisterClusterRelay

func offering(o contract.Offer) []byte {
	request := facts(0)
	request.Protocol = o
	return request.AppendJSON(nil)
}

// Each wrong registration is refused by its own name and consumes no sequence.
func TestRelayRegistrationIsJudged(t *testing.T) {
	newer := contract.Offer{InterfacesVersion: "33.0.0", MinimumPeerVersion: "33.0.0"}
	below := contract.Offer{InterfacesVersion: "32.9.0", MinimumPeerVersion: "32.0.0"}
	above := contract.Offer{InterfacesVersion: "32.50.0", MinimumPeerVersion: "32.45.0"}
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) {
			cfg.Offer = contract.Offer{InterfacesVersion: "32.44.0", MinimumPeerVersion: "32.10.0"}
			cfg.HubPrefix = netip.MustParsePrefix("192.0.2.0/24")
		})
		c := s.dial(nil)
		c.authenticate()
		body := facts(0).AppendJSON(nil)
		refuses := func(name string, body []byte, text, data string) {
			t.Helper()
			c.refuses(register, wrong{name, body, text, data})
		}
		protocol := func(name string, theirs contract.Offer, reason contract.Incompatibility) {
			t.Helper()
			r := contract.ProtocolRefusal{Reason: reason, Refusing: s.cfg.Offer, Refused: theirs}
			refuses(name, offering(theirs), r.Text(), string(r.AppendData(nil)))
		}
		protocol("other major", newer, contract.MajorMismatch)
		protocol("below the minimum", below, contract.PeerBelowMinimum)
		protocol("wants a newer peer", above, contract.SelfBelowPeerMinimum)
		c.refuses(register,
			unread(t, "no offer", contract.ReadOffer, []byte(`{"relay":{}}`)),
			unread(t, "offer with another key", contract.ReadOffer, swap(t, body, `{"interfacesVersion"`, `{"novel":1,"interfacesVersion"`)),
			unread(t, "unknown member", contract.ReadRelayRegistrationRequest, swap(t, body, `"relay":{`, `"relay":{"novel":1,`)),
			unread(t, "hostname", contract.ReadRelayRegistrationRequest, swap(t, body, `10.0.4.7`, `relay`)),
			unread(t, "loopback", contract.ReadRelayRegistrationRequest, swap(t, body, `10.0.4.7`, `127.0.0.1`)))
		text, data := named(contract.RelayNodeUnknown, "relay.nodeId names no enrolled node")
		refuses("unknown node", swap(t, body, `node-a`, `node-q`), text, data)
		text, data = named(contract.RelayNodeForeign, "relay.nodeId is a node of another cluster")
		refuses("foreign node", swap(t, body, `node-a`, `node-x`), text, data)
		refuses("hub outside the plan", withHub(facts(0), "198.51.100.1").AppendJSON(nil),
			"relay.vpnHub.address: is not inside the hub prefix of the address plan", "")

		if n := len(s.Registrations()); n != 0 {
			t.Fatalf("%d registrations were accepted", n)
		}
		c.must(register, withHub(facts(0), "192.0.2.1").AppendJSON(nil))
		wantViolations(t, s.Violations())
	})
}

// R16: the simulated Cloudly refuses a number that does not advance on its socket, and
// across sockets a number orders nothing.
func TestR16_SequenceAdvancesOnOneSocketAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.dial(nil)
		c.authenticate()
		c.must(register, facts(7).AppendJSON(nil))
		text, data := named(contract.RelaySequenceNotAdvancing, "registrationSequence does not increase on this socket")
		c.refuses(register,
			wrong{"repeated", facts(7).AppendJSON(nil), text, data},
			wrong{"lower", facts(6).AppendJSON(nil), text, data})
		if _, ok := s.Registered(); ok {
			t.Error("an undispatched refusal leaves the relay registered")
		}
		c.must(register, facts(8).AppendJSON(nil))

		// Across sockets a number orders nothing.
		other := s.dial(nil)
		other.authenticate()
		other.must(register, facts(0).AppendJSON(nil))
		sequences := []int64{}
		for _, r := range s.Registrations() {
			sequences = append(sequences, r.Sequence)
		}
		if diff := cmp.Diff([]int64{7, 8, 0}, sequences); diff != "" {
			t.Errorf("accepted sequences (-want +got):\n%s", diff)
		}
	})
}

// R16: after a scripted refusal the simulated Cloudly takes the same number again.
func TestR16_RefusalConsumesNoSequence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		s.Script(register, Refuse("not now", nil), RefuseProtocol(contract.PeerBelowMinimum))
		c := s.dial(nil)
		c.authenticate()
		c.refuses(register, wrong{"scripted", facts(0).AppendJSON(nil), "not now", ""})
		_, err := c.ask(register, facts(0).AppendJSON(nil))
		wantProtocolRefusal(t, err, contract.PeerBelowMinimum)
		c.must(register, facts(0).AppendJSON(nil))
	})
}

func TestRelayRegistrationOfADisabledCluster(t *testing.T) {
	text, data := named(contract.RelayClusterNotEnabled, "nobody enabled the relay of this cluster")
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.Origin = "" })
		c := s.dial(nil)
		c.authenticate()
		c.refuses(register, wrong{"not enabled", facts(0).AppendJSON(nil), text, data})
		if err := s.EnableRelay("https://Relay.example"); err == nil {
			t.Error("an origin that is none is published")
		}
		if err := s.EnableRelay(testOrigin); err != nil {
			t.Fatal(err)
		}
		c.must(register, facts(0).AppendJSON(nil))
		s.DisableRelay()
		c.refuses(register, wrong{"disabled", facts(1).AppendJSON(nil), text, data})
	})
}

// R24: the simulated Cloudly refuses every call on a socket of an earlier generation:
// registrations, pulls and nodes' reports.
func TestR24_StaleGenerationIsHeardOnEveryCall(t *testing.T) {
	text, data := named(contract.RelayCredentialGenerationStale, "the socket authenticated as an earlier generation")
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		session := c.node("node-a", s.credential("node-a"), nonceA)
		s.RotateCredential()
		c.refuses(register, wrong{"registration", facts(1).AppendJSON(nil), text, data})
		c.refuses(contract.MethodGetVPNNetwork, wrong{"pull", []byte("{}"), text, data})
		c.refuses("reportRuntimeNetworkProtection", wrong{"a node's report", under(session, "{}"), text, data})
		other := s.dial(nil)
		other.authenticate()
		other.must(register, facts(1).AppendJSON(nil))
	})
}

// The answer names the published origin, Cloudly's offer, and two records by
// their digests (contract §5.3).
func TestRelayRegistrationAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.dial(nil)
		c.authenticate()
		for i := range int64(2) {
			answer, err := contract.ReadStrictRelayRegistrationAnswer([]byte(c.must(register, facts(i).AppendJSON(nil))))
			if err != nil {
				t.Fatal(err)
			}
			held := s.Registrations()[i]
			want := contract.RelayRegistrationAnswer{Origin: testOrigin, Protocol: DefaultOffer(),
				Credential: s.Credential(), AcceptedRegistration: held.Reference}
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			wantHeld := AcceptedRegistration{Socket: 1, At: time.Now(), Sequence: i, Relay: facts(i).Relay, Offer: DefaultOffer(),
				Credential: s.Credential(), Reference: held.Reference}
			if diff := cmp.Diff(wantHeld, held); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			if held.Reference.Generation != i+1 {
				t.Errorf("the record has generation %d, want %d", held.Reference.Generation, i+1)
			}
		}
		if first, second := s.Registrations()[0], s.Registrations()[1]; first.Reference.Digest == second.Reference.Digest {
			t.Error("two records have one digest")
		}
		if s.Credential().Generation != 1 {
			t.Error("the first credential is not generation 1")
		}
	})
}

func TestLoopbackIsForTests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, func(cfg *CloudlyConfig) { cfg.AllowLoopback = true })
		c := s.dial(nil)
		c.authenticate()
		c.must(register, swap(t, facts(0).AppendJSON(nil), "10.0.4.7", "127.0.0.1"))
	})
}
