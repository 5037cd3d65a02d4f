package appliance

import (
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
)

// R43: a node's VPN credential reaches it byte for byte, and nothing that the
// relay shows or writes holds the key.
func TestR43_ManagedVPNCredential(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const method = "getRuntimeManagedVpnCredential"
		const marked = "bWFya2VkLXByaXZhdGUta2V5LW9mLXRoZS1ub2RlLTA="
		answer := `{ "expiresAt":1, "clientKeyPair" : {"privateKey":"` + marked + `","publicKey":"x"}, "\u0061uthorityId":"m" }`
		r, a, _ := holding(t, change{})
		r.cloudly.Handle(method, func(string, []byte) ([]byte, error) { return []byte(answer), nil })
		for range 3 {
			got, err := a.call(method, strings.Replace(a.under(), `"entry":1`, `"projection":{"id":"p"}`, 1))
			if err != nil || string(got) != answer {
				t.Errorf("the node was answered %v %s", err, got)
			}
		}
		r.wantSecret(marked)
		r.cloudly.CutSockets()
		after(20 * time.Second)
		r.wantSecret(marked)
		if n := len(r.upstream(method)); n != 3 {
			t.Errorf("cloudly was asked %d times", n)
		}
	})
}

// R44: what a node observed under an earlier session passes inside a body under
// its current one; the inner sessions are nobody's business here.
func TestR44_HistoricalBodies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		p := r.node("node-a")
		earlier, _ := p.Binding()
		next, err := r.cloudly.RotateNodeCredential("node-a")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Rotate(r.soon(), next); err != nil {
			t.Fatal(err)
		}
		current, _ := p.Binding()
		if string(earlier.Received) == string(current.Received) {
			t.Fatal("the rotation brought no other session")
		}
		for _, method := range []string{
			"reportRuntimeAssignmentObservation", "reportRuntimeAssignmentTerminalReceipt",
			"reportRuntimeNetworkProtection", "reportRuntimeNetworkProjectionApplication",
		} {
			body := `{"observation":{"session":` + string(earlier.Received) + `,"load":0.25},"session":` + string(current.Received) + `}`
			if _, err := p.SendBody(r.soon(), method, []byte(body)); err != nil {
				t.Errorf("%s: %v", method, err)
			}
			if got := r.upstream(method); len(got) != 1 || string(got[0].Body) != body {
				t.Errorf("%s: cloudly received %v", method, got)
			}
			// The earlier session alone is none that is held.
			old := `{"session":` + string(earlier.Received) + `,"load":0.25}`
			if _, err := p.SendBody(r.soon(), method, []byte(old)); nameOf(err) != contract.RelayNodeSessionNotCurrent {
				t.Errorf("%s under an earlier session: %v", method, err)
			}
			if n := len(r.upstream(method)); n != 1 {
				t.Errorf("%s: cloudly received %d", method, n)
			}
		}
		r.wantNoViolations(p)
	})
}
