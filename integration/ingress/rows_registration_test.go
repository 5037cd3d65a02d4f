package ingress_test

import (
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/ingress"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// loosely spells a body with other members' order, white space and escapes.
func loosely(body string) []byte {
	return []byte(" {\n\"\\u0076ersion\" :\t\"3.1.0\" , " + strings.Replace(strings.TrimPrefix(body, "{"), `"version":"3.1.0",`, ``, 1) + "\r\n ")
}

// R70: the body that an ingress sends is the body that Cloudly judges, byte for byte. The
// acceptance that comes back bears Cloudly's revision and the relay's own offer.
func TestR70_OneBodyTravelsBothHops(t *testing.T) {
	c := start(t)
	capabilities := contract.Raw("{ \"z\" : [1.50,-0,1e+21,{\"a\":1}],\n\"\\u0061\":\"\\u00e9\\/<\u2028>\" }")
	spell := func(cfg *simulate.IngressConfig) {
		cfg.Version, cfg.Capabilities = "3.1.0", capabilities
		cfg.Spell = func(body []byte) []byte { return loosely(string(body)) }
		cfg.RelayOffer = contract.Offer{InterfacesVersion: "32.44.0", MinimumPeerVersion: "32.0.0"}
	}
	a := c.Ingress("node-a", c.bearer, spell)
	c.pushed("a table", plainTable(7), 7)
	c.Cloudly.Script(registering, anyway(`{ "novel":1,"protocol":`+cloudlyOffer+`, "revision" : 7,"accepted":true}`))
	if err := a.Register(c.Soon()); err != nil {
		t.Fatal(err)
	}
	sent, arrived := a.Frames().Sent(registering), c.Cloudly.Frames().Received(registering)
	if len(sent) != 2 || len(arrived) != 2 {
		t.Fatalf("%d registrations were sent and %d arrived", len(sent), len(arrived))
	}
	for n, revision := range []string{"null", "7"} {
		if string(arrived[n].Body) != string(sent[n].Body) || sent[n].Body[1] == '"' {
			t.Errorf("the body changed on its way: %q, sent was %q", arrived[n].Body, sent[n].Body)
		}
		if arrived[n].ID == sent[n].ID || arrived[n].Instance == sent[n].Instance {
			t.Error("an ingress's own correlation crossed the relay")
		}
		answer, _ := a.Frames().Answer(sent[n])
		if want := `{"accepted":true,"revision":` + revision + `,"protocol":` + relayOffer + `}`; string(answer.Body) != want {
			t.Errorf("the ingress was answered %s, want %s", answer.Body, want)
		}
	}
	if got := c.Cloudly.IngressRegistrations(); len(got) != 1 || string(got[0].Capabilities) != string(capabilities) || got[0].NodeID != "node-a" {
		t.Errorf("cloudly accepted %+v", got)
	}
	if s := c.status(); len(s.Ingresses) != 1 || s.Ingresses[0].Registrations != 2 || s.InFlight != (ingress.InFlight{}) {
		t.Errorf("the status shows %+v", s)
	}
	for how, want := range map[string]float64{"first": 1, "again": 1, "newer-socket": 0} {
		if got := c.counted("relay_ingress_accepted_registrations_total", "outcome", how); got != want {
			t.Errorf("%v acceptances are counted as %s, want %v", got, how, want)
		}
	}
}

// offering is a registration with another offer, in which everything else is wrong.
func offering(node, offer string) string {
	return `{"bearer":7,"nodeId":"` + node + `","zzForeign":[1.0],"protocol":` + offer + `}`
}

// R70: the offer is judged first, whatever else is wrong, with or without Cloudly. One that
// does not go with the relay's is refused by IProtocolRefusal, and Cloudly hears of none.
func TestR70_OffersAreJudgedFirst(t *testing.T) {
	const own = `{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.40.0"}`
	c := start(t, rig.Document("protocol:\n  interfacesVersion: 32.44.0\n  minimumPeerVersion: 32.40.0\n"))
	h := c.byHand()
	incompatible := []struct{ offer, reason string }{
		{`{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"}`, "major-mismatch"},
		{`{"interfacesVersion":"31.99.0","minimumPeerVersion":"31.0.0"}`, "major-mismatch"},
		{`{"interfacesVersion":"32.39.9","minimumPeerVersion":"32.0.0"}`, "peer-below-minimum"},
		{`{"interfacesVersion":"32.45.0","minimumPeerVersion":"32.44.1"}`, "self-below-peer-minimum"},
	}
	judge := func(when string) {
		for _, row := range incompatible {
			for _, body := range []string{offering("a.b", row.offer), strings.Replace(c.registration("node-a"), relayOffer, row.offer, 1)} {
				_, err := h.ask(registering, body)
				remote, ok := c.remote(row.reason+when, err)
				if !ok {
					continue
				}
				want := fmt.Sprintf(`{"code":"protocol-incompatible","reason":%q,"refusing":%s,"refused":%s}`, row.reason, own, row.offer)
				if string(remote.Data) != want || !strings.HasPrefix(remote.Text, "protocol-incompatible: "+row.reason) {
					t.Errorf("%s%s: refused with %q %s, want %s", row.reason, when, remote.Text, remote.Data, want)
				}
			}
		}
		for _, offer := range []string{
			`null`, `"32.44.0"`, `{}`, `{"interfacesVersion":"32.44","minimumPeerVersion":"32.0.0"}`,
			`{"interfacesVersion":"v32.44.0","minimumPeerVersion":"32.0.0"}`, `{"interfacesVersion":"32.44.0","minimumPeerVersion":"33.0.0"}`,
			`{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.44.1"}`, `{"interfacesVersion":"32.044.0","minimumPeerVersion":"32.0.0"}`,
			`{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0","x":1}`, `{"interfacesVersion":32}`,
		} {
			_, err := h.ask(registering, offering("node-a", offer))
			c.wantOwn(offer+when, err, contract.IngressRegistrationInvalid, ": protocol")
		}
	}
	judge("")
	// The lowest that goes with the relay's own is carried, and the highest.
	for _, offer := range []string{`{"interfacesVersion":"32.40.0","minimumPeerVersion":"32.0.0"}`, `{"interfacesVersion":"32.999.0","minimumPeerVersion":"32.44.0"}`} {
		answer, err := h.ask(registering, strings.Replace(c.registration("node-a"), relayOffer, offer, 1))
		if want := `{"accepted":true,"revision":null,"protocol":` + own + `}`; err != nil || string(answer) != want {
			t.Errorf("%s: answered %s, %v", offer, answer, err)
		}
	}
	c.lose()
	h = c.byHand()
	judge(" without cloudly")
	if got := len(c.Cloudly.Frames().Received(registering)); got != 2 {
		t.Errorf("cloudly received %d registrations, want 2", got)
	}
	if got := c.counted("relay_ingress_ended_registrations_total", "outcome", "incompatible"); got != float64(4*len(incompatible)) {
		t.Errorf("%v registrations are counted as incompatible", got)
	}
}

// R70: an offer that goes with the relay's and not with Cloudly's is refused by Cloudly,
// and its refusal comes back as it was written.
func TestR70_CloudlyJudgesTheOfferToo(t *testing.T) {
	c := start(t)
	h := c.byHand()
	const old = `{"interfacesVersion":"32.2.0","minimumPeerVersion":"32.0.0"}`
	_, err := h.ask(registering, strings.Replace(c.registration("node-a"), relayOffer, old, 1))
	want := `{"code":"protocol-incompatible","reason":"peer-below-minimum","refusing":` + cloudlyOffer + `,"refused":` + old + `}`
	if remote, ok := c.remote("an old ingress", err); ok && string(remote.Data) != want {
		t.Errorf("refused with %q %s, want %s", remote.Text, remote.Data, want)
	}
	if got := len(c.Cloudly.Frames().Received(registering)); got != 1 {
		t.Errorf("cloudly received %d registrations", got)
	}
	if s := c.status(); len(s.Ingresses) != 0 || s.LastRefusal == nil || s.LastRefusal.Reason != "protocol-incompatible" || !s.Attached {
		t.Errorf("the status shows %+v", s)
	}
	h.wantRefusedHere("the table for a refused ingress", asking, `{"knownRevision":null}`, notRegistered)
}

// R01: the node of an ingress is named by the rule of nodes.
func TestR01_NodesOfIngresses(t *testing.T) {
	long := strings.Repeat("a", 128)
	c := start(t)
	good := []string{"-abc", "_abc", long}
	c.bearer = c.DesignateIngress(good...)
	held := plainTable(4)
	c.publishes(held)
	for _, node := range good {
		h := c.ingress(node)
		defer h.wantTable(node, held)
	}
	h := c.byHand()
	for _, node := range []string{"a.b", "a:b", "a b", "", "\u00e9", long + "a", `\u0000`, `-abc\n`} {
		_, err := h.ask(registering, strings.Replace(c.registration("node-x"), `"node-x"`, `"`+node+`"`, 1))
		c.wantOwn(node, err, contract.IngressRegistrationInvalid, ": nodeId: ")
	}
	for _, member := range []string{`7`, `null`, `["-abc"]`} {
		_, err := h.ask(registering, strings.Replace(c.registration("node-x"), `"node-x"`, member, 1))
		c.wantOwn(member, err, contract.IngressRegistrationInvalid, ": nodeId: ")
	}
	if got := len(c.Cloudly.Frames().Received(registering)); got != len(good) {
		t.Errorf("cloudly received %d registrations, want %d", got, len(good))
	}
	c.wantSpeakers("-abc", "_abc", long)
}
