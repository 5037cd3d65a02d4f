package session_test

import (
	"net/http"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// R30: a node's bearer is shown nowhere, whatever becomes of its registration. That nothing of it stays in memory is
// held by the test of the whole appliance.
func TestR30_ABearerIsShownNowhere(t *testing.T) {
	r := ready(t)
	a := r.Node("node-a") // accepted, with a marked token
	var markers []string
	marked := func(id string) string {
		marker := r.Marker("a bearer")
		markers = append(markers, marker)
		return string(registering(id, simulate.NodeCredential{Generation: 1, Token: "palletToken_" + marker}, 1).AppendJSON(nil))
	}
	heard := ""
	hear := func(_ contract.Raw, err error) {
		if err == nil {
			t.Error("a registration that cannot be right was accepted")
			return
		}
		heard += err.Error() + "\n"
	}
	h := byHand(t, r)
	hear(h.ask(registration, marked("node-b")))                        // refused by Cloudly, which knows another token
	hear(h.ask(registration, marked("node.b")))                        // refused by the relay, which knows the rules of names
	hear(h.ask("somethingNobodyKnows", marked("x")))                   // refused by the relay, which knows no such method
	hear(h.ask(protection, marked("node-b")))                          // nor this one without a session
	hear(a.SendBody(r.Soon(), registration, []byte(marked("node-b")))) // on the socket of another node
	hear(a.SendBody(r.Soon(), protection, []byte(marked("node-b"))))
	r.Cloudly.Script(registration, anyway(`{"session":{"nodeId":"node-x"}}`))
	hear(h.ask(registration, marked("node-b"))) // answered wrongly, which closes the socket
	ended := func(send func(h *hand)) {
		h := byHand(t, r)
		send(h)
		_, reason := h.WaitClose()
		heard += reason + "\n"
	}
	ended(func(h *hand) { h.Send(rig.RequestText(registration, "id", marked("node-b")) + "}") })
	ended(func(h *hand) {
		h.Send(rig.RequestText(registration, "id", strings.Repeat(" ", 64<<10)+marked("node-b")))
	})
	ended(func(h *hand) { h.SendBinary([]byte(rig.RequestText(registration, "id", marked("node-b")))) })
	answer, err := r.NodeHTTP().Post(r.Origin()+"/typedrequest?"+r.Marker("a query"), "application/json",
		strings.NewReader(rig.RequestText(registration, "id", marked("node-b"))))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a registration over HTTP was answered %s", answer.Status)
	}
	r.AssertNoMarkers()

	r.Upstream.Outage()
	waitDetached(r)
	hear(byHand(t, r).ask(registration, marked("node-b")))
	for _, marker := range markers {
		if strings.Contains(heard, marker[:27]) {
			t.Errorf("a refusal quotes a bearer: %s", heard)
		}
	}
	r.AssertNoMarkers()
}

// R43: the key of a node's VPN credential reaches that node byte for byte, and nothing and nobody else.
func TestR43_AVPNKeyReachesItsNodeAlone(t *testing.T) {
	const method = "getRuntimeManagedVpnCredential"
	r := ready(t)
	a, b := r.Node("node-a"), r.Node("node-b")
	key := r.Marker("a node's VPN key")
	answer := `{ "expiresAt":1, "clientKeyPair" : {"privateKey":"` + key + `","publicKey":"x"}, "\u0061uthorityId":"m" }`
	refusal := simulate.Refuse("not-today: x", []byte(`{"code":"not-today","privateKey":"`+key+`"}`))
	r.Cloudly.Script(method, anyway(answer), anyway(answer), refusal)
	for range 2 {
		if got, err := a.Send(r.Soon(), method, []byte(`{"projection":{"id":"p"}}`)); err != nil || string(got) != answer {
			t.Errorf("the node was answered %v, and its answer changed or not", err)
		}
	}
	if _, err := a.Send(r.Soon(), method, []byte(`{"projection":{"id":"p"}}`)); err == nil {
		t.Error("a refusal was taken for an answer")
	}
	wantCrossed(t, []string{method}, a.Frames(), r.Cloudly.Frames())
	wantCarried(t, r, a, "node-a")
	wantCarried(t, r, b, "node-b")
	for _, f := range b.Frames().All() {
		if strings.Contains(string(f.Text), key) {
			t.Error("another node received the key")
		}
	}
	r.AssertNoMarkers()

	// It is kept for nobody: without Cloudly there is none.
	r.Upstream.Outage()
	waitDetached(r)
	_, err := a.Send(r.Soon(), method, []byte(`{"projection":{"id":"p"}}`))
	wantRefused(t, "the credential without cloudly", err, contract.RelayNotReady)
	r.AssertNoMarkers()
}
