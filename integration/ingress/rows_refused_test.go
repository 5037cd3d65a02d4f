package ingress_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// reasons are those of clusterIngressRegistrationRefusalReasons, in judging order
// (contract §11.2).
var reasons = []contract.RefusalName{
	"not-ready", "registration-invalid", "relay-not-connected", "ingress-not-designated",
	"node-mismatch", "assignment-not-running", "bearer-refused", "conflict",
}

// R71: each refusal of Cloudly's, with the shortest and the longest wait, reaches the
// ingress with its text and the bytes of its data, and the relay tells its name. So does
// an error that is none of them.
func TestR71_EachRefusalTravelsUntouched(t *testing.T) {
	c := start(t)
	held := plainTable(4)
	c.publishes(held)
	registered, h := c.ingress("node-b"), c.byHand()
	refuse := func(what, text, data string) {
		t.Helper()
		c.Cloudly.Script(registering, simulate.Refuse(text, []byte(data)))
		_, err := h.ask(registering, c.registration("node-a"))
		if remote, ok := c.remote(what, err); ok && (remote.Text != text || string(remote.Data) != data) {
			t.Errorf("%s: refused with %q %s, want %q %s", what, remote.Text, remote.Data, text, data)
		}
		h.wantRefusedHere(what+": the table", asking, `{"knownRevision":null}`, notRegistered)
	}
	for _, reason := range reasons {
		for _, wait := range []int{1000, 300000} {
			what := fmt.Sprint(reason, " for ", wait, " ms")
			// As its writer spells it, and as no writer does.
			refuse(what, "cluster-ingress-registration-refused: "+string(reason), refusalData(reason, wait))
			refuse(what+", spelled otherwise", "\u00e9 says <no> \"today\"\u2028", fmt.Sprintf("{ \"retryAfterMs\" : %d,\n\t\"reason\":\"\\u00%02x%s\",\"code\" : \"cluster-ingress-registration-refused\" }", wait, reason[0], reason[1:]))
			if s := c.status(); s.LastRefusal == nil || s.LastRefusal.Node != "node-a" || s.LastRefusal.Reason != reason || s.LastRefusal.RetryAfterMs != int64(wait) {
				t.Errorf("%s: the status shows %+v", what, s.LastRefusal)
			}
		}
		if got := c.counted("relay_ingress_declined_registrations_total", "reason", string(reason)); got != 4 {
			t.Errorf("%v registrations are counted as declined for %s", got, reason)
		}
	}
	for _, data := range []string{
		refusalData("not-ready", 999), refusalData("not-ready", 300001), refusalData("tomorrow", 1000),
		`{}`, `[ ]`, `"not-ready"`, `{"code":"cluster-ingress-registration-refused","reason":"not-ready","retryAfterMs":1000,"x":1}`,
	} {
		refuse("data "+data, "not today", data)
		if s := c.status(); s.LastRefusal == nil || s.LastRefusal.Reason != "unnamed" || s.LastRefusal.RetryAfterMs != 0 {
			t.Errorf("data %s: the status shows %+v", data, s.LastRefusal)
		}
	}
	registered.wantTable("another node's ingress", held)
	c.wantSpeakers("node-b")
	if _, err := h.ask(registering, c.registration("node-a")); err != nil {
		t.Errorf("the socket of a refused ingress: %v", err)
	}
	h.wantTable("the ingress that was refused before", held)
}

// R71: what Cloudly's records say, reason by reason, in the order in which they are judged;
// the ingress that is refused last is accepted next, on the socket that it has.
func TestR71_CloudlyJudgesInOrder(t *testing.T) {
	c := start(t)
	h := c.byHand()
	refused := func(reason contract.RefusalName, body string, wait int) {
		t.Helper()
		_, err := h.ask(registering, body)
		if remote, ok := c.remote(string(reason), err); ok && string(remote.Data) != refusalData(reason, wait) {
			t.Errorf("%s: refused with %q %s", reason, remote.Text, remote.Data)
		}
	}
	wrong := registrationWith("node-x", "no-bearer-of-anybody")
	c.Cloudly.SetIngressReady(false)
	refused("not-ready", wrong, 5000)
	c.Cloudly.SetIngressReady(true)
	c.Cloudly.WithdrawIngress()
	refused("ingress-not-designated", wrong, 60000)
	c.bearer = c.DesignateIngress(c.nodes...)
	refused("node-mismatch", wrong, 300000)
	wrong = strings.Replace(wrong, "node-x", "node-a", 1)
	if err := c.Cloudly.StopIngress("node-a"); err != nil {
		t.Fatal(err)
	}
	refused("assignment-not-running", wrong, 5000)
	if err := c.Cloudly.RunIngress("node-a"); err != nil {
		t.Fatal(err)
	}
	refused("bearer-refused", wrong, 300000)
	// The designation changes while the registration is judged.
	c.Cloudly.Script(registering, simulate.Late(300*time.Millisecond))
	id := h.Request(registering, c.registration("node-a"))
	if err := c.Cloudly.Wait(c.Soon(), "a registration that is being judged", func() bool { return len(c.Cloudly.IngressRegistrations()) == 1 }); err != nil {
		t.Fatal(err)
	}
	if err := c.Cloudly.RunIngress("node-a"); err != nil {
		t.Fatal(err)
	}
	_, err := h.answer(registering, id)
	if remote, ok := c.remote("conflict", err); ok && string(remote.Data) != refusalData("conflict", 1000) {
		t.Errorf("conflict: refused with %q %s", remote.Text, remote.Data)
	}
	c.wantSpeakers()
	if _, err := h.ask(registering, c.registration("node-a")); err != nil {
		t.Fatal(err)
	}
	c.wantSpeakers("node-a")
}

// R71: a refused ingress waits as long as it was told, and comes back by itself.
func TestR71_AnIngressWaitsAsToldAndReturns(t *testing.T) {
	c := start(t)
	c.Cloudly.Script(registering, simulate.RefuseIngress(contract.IngressConflict, contract.MinimumIngressRetry), simulate.RefuseIngress(contract.IngressNotReady, contract.MinimumIngressRetry))
	i := c.Ingress("node-a", c.bearer)
	sent := i.Frames().Sent(registering)
	if len(sent) != 3 || i.Dials() != 1 {
		t.Fatalf("%d registrations on %d sockets", len(sent), i.Dials())
	}
	for n := range 2 {
		if apart := sent[n+1].At.Sub(sent[n].At); apart < contract.MinimumIngressRetry {
			t.Errorf("registration %d came %s after the one that was refused", n+2, apart)
		}
	}
}

// R71: two reasons are the relay's own: a body that breaks a rule, and no session to
// Cloudly. They are whole refusals, with the relay's own wait, and Cloudly hears of none.
func TestR71_TheRelaysOwnRefusals(t *testing.T) {
	t.Parallel()
	c := begin(t, rig.NotStarted())
	c.Upstream.Outage()
	c.Start()
	first := c.byHand()
	_, err := first.ask(registering, c.registration("node-a"))
	c.wantOwn("before the first session", err, contract.IngressNotReady, "")
	c.back()
	c.WaitReady()
	if _, err := first.ask(registering, c.registration("node-a")); err != nil {
		t.Errorf("the same socket, with a session: %v", err)
	}

	h := c.byHand()
	good := c.registration("node-b")
	for says, body := range map[string]string{
		"bearer: is empty":                              registrationWith("node-b", ""),
		"bearer: is missing":                            strings.Replace(good, `"bearer"`, `"b"`, 1),
		"bearer: is not a string":                       strings.Replace(good, `"bearer":`, `"bearer":7,"x":`, 1),
		"version: is not 1 to 128 printable characters": strings.Replace(good, `"3.1.0"`, `"`+strings.Repeat("3", 129)+`"`, 1),
		"version: is missing":                           strings.Replace(good, `"version":"3.1.0",`, ``, 1),
		"nodeId: is missing":                            strings.Replace(good, `"nodeId":"node-b",`, ``, 1),
		"protocol: is missing":                          strings.Replace(good, `"protocol"`, `"protocols"`, 1),
		"protocol.interfacesVersion: is given twice":    strings.Replace(good, `"minimumPeerVersion"`, `"interfaces\u0056ersion":"32.44.0","minimumPeerVersion"`, 1),
	} {
		_, err := h.ask(registering, body)
		c.wantOwn(says, err, contract.IngressRegistrationInvalid, says)
	}
	c.lose()
	for what, socket := range map[string]*hand{"a new socket": c.byHand(), "the socket of an ingress": first, "a socket that was refused": h} {
		_, err := socket.ask(registering, c.registration("node-a"))
		c.wantOwn("in an outage, on "+what, err, contract.IngressNotReady, "")
	}
	c.wantSpeakers("node-a") // which it stays over the outage
	if got := len(c.Cloudly.Frames().Received(registering)); got != 1 {
		t.Errorf("cloudly received %d registrations, want 1", got)
	}
	if s := c.status(); s.LastRefusal != nil {
		t.Errorf("the status shows %+v as a refusal of cloudly's", s.LastRefusal)
	}
}

// R71: registrations that Cloudly does not answer are bounded. Those beyond are refused
// by the relay, as one without a session is; those that wait are when the session ends.
func TestR71_RegistrationsInFlightAreBounded(t *testing.T) {
	const most, ofOne = 64, 2
	c := start(t)
	c.Cloudly.ScriptAlways(registering, simulate.Ignore())
	var waiting []*hand
	var ids []string
	for range most / ofOne {
		h := c.byHand()
		waiting = append(waiting, h)
		for range ofOne {
			ids = append(ids, h.Request(registering, c.registration("node-a")))
		}
	}
	if err := c.Cloudly.WaitReceived(c.Soon(), registering, most); err != nil {
		t.Fatal(err)
	}
	if got := c.status().InFlight.Registrations; got != most {
		t.Errorf("%d are in flight", got)
	}
	h := c.byHand()
	_, err := h.ask(registering, c.registration("node-b"))
	c.wantOwn("one more", err, contract.IngressNotReady, "")
	if got := len(c.Cloudly.Frames().Received(registering)); got != most {
		t.Errorf("cloudly received %d registrations", got)
	}
	c.lose()
	for n, h := range waiting {
		var answered []string
		for range ofOne { // in whichever order
			m := h.next()
			answered = append(answered, m.ID)
			c.wantOwn("one that waited", &typedsocket.RemoteError{Text: m.ErrorText, Data: m.ErrorData}, contract.IngressNotReady, "")
		}
		if want := ids[n*ofOne : n*ofOne+ofOne]; !slices.Equal(slices.Sorted(slices.Values(answered)), slices.Sorted(slices.Values(want))) {
			t.Errorf("answered were %q, want %q", answered, want)
		}
	}
	if got := c.status(); got.InFlight.Registrations != 0 || len(got.Ingresses) != 0 {
		t.Errorf("the status shows %+v", got)
	}
	for how, want := range map[string]float64{"overloaded": 1, "not-ready": most} {
		if got := c.counted("relay_ingress_ended_registrations_total", "outcome", how); got != want {
			t.Errorf("%v registrations are counted as %s, want %v", got, how, want)
		}
	}
}
