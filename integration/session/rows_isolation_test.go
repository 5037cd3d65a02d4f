package session_test

import (
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// forgeries are bodies by which a node would speak as another one, or as itself at another time. own and other are
// sessions of this node and of node-b.
func forgeries(own, other contract.Raw) map[string][]byte {
	x := `"x":"` + withheld + `"`
	later := strings.Replace(string(own), `"sessionEpoch":1`, `"sessionEpoch":2`, 1)
	return map[string][]byte{
		"another node's session":                under(other, x),
		"another node's name in the session":    under(contract.Raw(strings.Replace(string(own), "node-a", "node-b", 1)), x),
		"another epoch":                         under(contract.Raw(later), x),
		"a session with a member more":          under(contract.Raw(strings.Replace(string(own), `{`, `{"more":1,`, 1)), x),
		"a session that is null":                under(contract.Raw(`null`), x+`,"nodeId":"node-a"`),
		"no session, another node":              []byte(`{"nodeId":"node-b",` + x + `}`),
		"no session, another node deeper":       []byte(`{"nodeId":"node-a","of":[{"nodeId":"node-b"}],` + x + `}`),
		"no session, another node named oddly":  []byte(`{"nodeId":"node-a","of":{"n\u006fdeId":"node-b"},` + x + `}`),
		"no session, a node that is no text":    []byte(`{"nodeId":"node-a","of":{"nodeId":["node-a"]},` + x + `}`),
		"no session, no node":                   []byte(`{` + x + `}`),
		"no session, the node's name elsewhere": []byte(`{"id":"node-a",` + x + `}`),
	}
}

// R31: a node speaks as itself alone: another's session, a session stolen from another socket, and a body without one
// that names another node are refused and reach nobody; its own pass.
func TestR31_ANodeSpeaksAsItselfAlone(t *testing.T) {
	r := ready(t)
	a, b := r.Node("node-a"), r.Node("node-b")
	stranger := byHand(t, r)
	for what, body := range forgeries(bound(t, a), bound(t, b)) {
		_, err := a.SendBody(r.Soon(), protection, body)
		wantRefused(t, what, err, contract.RelayNodeSessionNotCurrent)
		_, err = stranger.ask(protection, string(body))
		wantRefused(t, what+", from a socket without a session", err, contract.RelayNodeSessionNotCurrent)
	}
	// A session stolen from a socket that stands is worth nothing on another one.
	_, err := stranger.ask(protection, string(under(bound(t, a), `"x":"`+withheld+`"`)))
	wantRefused(t, "a stolen session", err, contract.RelayNodeSessionNotCurrent)

	// The node's own bodies pass: the session as a JSON value, or no session and its name alone.
	for _, body := range [][]byte{
		under(contract.Raw(odd(t, bound(t, a))), `"x":1`), []byte(`{"of":[{"nodeId":"node-a"},{"nodeId":"node-\u0061"}]}`),
	} {
		if _, err := a.SendBody(r.Soon(), protection, body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	wantCarried(t, r, a, "node-a")
	wantCarried(t, r, b, "node-b")
	wantWithheld(t, r.Cloudly.Frames())
}

// R33: a second node on one socket is refused, also while the first is not accepted yet, and costs the first nothing.
func TestR33_OneNodeASocket(t *testing.T) {
	r := ready(t)
	a := r.Node("node-a")
	second := strings.Replace(registrationOf(r, "node-b", 1), "palletToken_", withheld, 1)
	before := bound(t, a)
	for range 2 {
		_, err := a.SendBody(r.Soon(), registration, []byte(second))
		wantRefused(t, "a second node", err, contract.RelayNodeSessionNotCurrent)
	}
	if string(bound(t, a)) != string(before) || a.Dials() != 1 {
		t.Error("the first node did not keep its session")
	}

	h := byHand(t, r)
	r.Cloudly.Script(registration, simulate.Ignore())
	h.Request(registration, registrationOf(r, "node-c", 1))
	if err := r.Cloudly.WaitReceived(r.Soon(), registration, 2); err != nil {
		t.Fatal(err)
	}
	_, err := h.ask(registration, second)
	wantRefused(t, "a second node while the first waits", err, contract.RelayNodeSessionNotCurrent)
	answer, err := h.ask(registration, registrationOf(r, "node-c", 1))
	if err != nil {
		t.Fatal(err)
	}
	h.take(answer, "node-c")
	if _, err := h.ask(protection, string(under(h.session, `"x":1`))); err != nil {
		t.Error(err)
	}
	wantCarried(t, r, a, "node-a")
	wantWithheld(t, r.Cloudly.Frames())
}

// R35: a push goes to the one socket whose registration produced the session it names, and nowhere else.
func TestR35_APushReachesItsSessionAlone(t *testing.T) {
	r := ready(t)
	a, b := r.Node("node-a"), r.Node("node-b")
	earlier := bound(t, a)
	if err := a.Rotate(r.Soon(), r.RotateNode("node-a")); err != nil {
		t.Fatal(err)
	}
	current, x := string(bound(t, a)), `"x":"`+withheld+`"`
	for what, c := range map[string]struct {
		body string
		name contract.RefusalName
	}{
		"a stale session":             {string(under(earlier, x)), contract.RelayNodeSessionNotCurrent},
		"another node's session":      {string(under(contract.Raw(strings.Replace(current, "node-a", "node-b", 1)), x)), contract.RelayNodeSessionNotCurrent},
		"another epoch":               {string(under(contract.Raw(strings.Replace(current, `"sessionEpoch":2`, `"sessionEpoch":3`, 1)), x)), contract.RelayNodeSessionNotCurrent},
		"no session":                  {`{"nodeId":"node-a",` + x + `}`, contract.RelayNodeSessionNotCurrent},
		"a session without a node":    {`{"session":{},"nodeId":"node-a",` + x + `}`, contract.RelayNodeSessionNotCurrent},
		"a node that is not here":     {string(under(contract.Raw(strings.Replace(current, "node-a", "node-c", 1)), x)), contract.RelayNodeNotCarried},
		"a name that is no node's":    {string(under(contract.Raw(strings.Replace(current, "node-a", "node.a", 1)), x)), contract.RelayNodeNotCarried},
		"the node that the relay has": {string(under(contract.Raw(strings.Replace(current, "node-a", "node-relay", 1)), x)), contract.RelayNodeNotCarried},
	} {
		for _, method := range toNodes {
			_, err := r.Cloudly.Call(r.Soon(), method, []byte(c.body))
			wantRefused(t, method+", "+what, err, c.name)
		}
	}
	for range 3 {
		wantCarried(t, r, a, "node-a")
	}
	if got, other := len(a.Frames().Received(assignment)), len(b.Frames().Received(assignment)); got != 3 || other != 0 {
		t.Errorf("node-a was pushed %d times and node-b %d, want 3 and 0", got, other)
	}
	wantCarried(t, r, b, "node-b")
	wantWithheld(t, a.Frames())
	wantWithheld(t, b.Frames())
}

// never are the methods of contract §8.3, and one that nobody knows.
var never = []string{
	"openRuntimeAssignmentExec", "resizeRuntimeAssignmentExec", "closeRuntimeAssignmentExec", "readRuntimeLocalVolumeArchive",
	"writeRuntimeLocalVolumeArchive", "bindPalletLocalRuntimeController", "preparePalletNodeEnrollment", "bindPalletNodeEnrollment",
	"activatePalletNodeEnrollment", "bindPalletNodeRuntimeBinding", "readPalletNodeRuntimeBinding", "enableClusterRelay",
	"setClusterNodeCorestoreEndpoint", "getRuntimeLocalStorageClaims", "executeServiceBackup", "executeServiceRestore",
	"coreflowPruneNodeArchive", "coreflowGetCorestoreInventory", "uploadBackupArchiveObject", "downloadBackupArchiveObject",
	"somethingNobodyKnows",
}

// R38: what goes the other way, and what never passes, is refused in both directions and not delivered.
func TestR38_WrongDirectionsAndKeptMethodsAreRefused(t *testing.T) {
	r := ready(t)
	a := r.Node("node-a")
	stranger := byHand(t, r)
	body := under(bound(t, a), `"x":"`+withheld+`"`)
	for _, method := range append(never, toNodes...) {
		_, err := a.SendBody(r.Soon(), method, body)
		wantRefused(t, method+" from the node", err, contract.RelayMethodNotForwarded)
		_, err = stranger.ask(method, string(body))
		wantRefused(t, method+" from a stranger", err, contract.RelayMethodNotForwarded)
	}
	for _, method := range append(never, fromNodes...) {
		_, err := r.Cloudly.Call(r.Soon(), method, body)
		wantRefused(t, method+" from cloudly", err, contract.RelayMethodNotForwarded)
	}
	wantCarried(t, r, a, "node-a")
	wantWithheld(t, r.Cloudly.Frames())
	wantWithheld(t, a.Frames())
}

// R39: what only Cloudly sends is refused from the node listener by a name of its own, before and after a registration.
func TestR39_OnlyCloudlySendsWhatIsCloudlys(t *testing.T) {
	r := ready(t)
	a := r.Node("node-a")
	stranger := byHand(t, r)
	names := map[string]contract.RefusalName{"holdRuntimeNetworkDnsLeaseRenewals": contract.EscrowCloudlyOnly}
	for _, method := range []string{
		"applyClusterVpnNetwork", "pushClusterRouteTable", "getClusterTrafficStatistics", "backupClusterService", "restoreClusterService",
		"pruneClusterNodeArchive", "getClusterCorestoreInventory", "getClusterCorestoreLegacyResources", "prepareIsolatedRestoreOnNode",
		"stageIsolatedRestoreArchive", "getIsolatedRestoreProgressOnNode", "executeIsolatedRestoreOnNode", "cleanupIsolatedRestoreOnNode",
		"pushClusterConfig",
	} {
		names[method] = contract.RelayCloudlyOnly
	}
	for method, name := range names {
		for _, body := range []string{fmt.Sprintf(`{"x":%q}`, withheld), string(under(bound(t, a), `"x":"`+withheld+`"`))} {
			_, err := a.SendBody(r.Soon(), method, []byte(body))
			wantRefused(t, method+" from the node", err, name)
			_, err = stranger.ask(method, body)
			wantRefused(t, method+" from a stranger", err, name)
		}
	}
	wantCarried(t, r, a, "node-a")
	wantWithheld(t, r.Cloudly.Frames())
}
