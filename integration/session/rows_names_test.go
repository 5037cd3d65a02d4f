package session_test

import (
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/forward"
	"serve.zone/relay/integration/rig"
)

// R01: nodes are named by the rule of nodes, not by that of identifiers, wherever a node
// is named: carried or refused by name.
func TestR01_NodesAreNamedByTheRuleOfNodes(t *testing.T) {
	const own = "_-relay"
	r := ready(t, rig.With("node-id", own), rig.Before(func(r *rig.Rig) { r.Enroll(own) }))
	if facts := r.Cloudly.Registrations()[0].Relay; facts.NodeID != own {
		t.Errorf("the relay registered as %q", facts.NodeID)
	}
	long := strings.Repeat("a", 128)
	good := []string{"-abc", "_abc", long, "A-0_z", "-", "_", "7"}
	for _, id := range good {
		wantCarried(t, r, r.Node(id), id)
	}
	if got := len(rig.SectionOf[forward.Status](r, forward.Name).Nodes); got != len(good) {
		t.Errorf("the status shows %d nodes, want %d", got, len(good))
	}
	// An escape is a letter like any other.
	h := byHand(t, r)
	answer, err := h.ask(registration, strings.Replace(registrationOf(r, "node-e", 1), `"nodeId":"node-e"`, `"nodeId":"\u006eode\u002de"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	h.take(answer, "node-e")

	session := string(h.session)
	named := func(id string) string { return strings.Replace(session, "node-e", id, 1) }
	for _, id := range []string{"a.b", long + "a", "a:b", "", " ", "a b", "a/b", "\u00e9", "-abc ", "node-e\\n", "\\u0000"} {
		stranger := byHand(t, r)
		body := strings.Replace(registrationOf(r, "node-e", 1), `"nodeId":"node-e"`, `"`+withheld+`":1,"nodeId":"`+id+`"`, 1)
		_, err := stranger.ask(registration, body)
		wantRefused(t, "register "+id, err, contract.RelayNodeNotCarried)
		_, err = h.ask(registration, body)
		wantRefused(t, "register on a bound socket "+id, err, contract.RelayNodeNotCarried)
		_, err = h.ask(protection, `{"session":`+named(id)+`,"x":"`+withheld+`"}`)
		wantRefused(t, "report as "+id, err, contract.RelayNodeSessionNotCurrent)
		_, err = h.ask(protection, `{"nodeId":"`+id+`","x":"`+withheld+`"}`)
		wantRefused(t, "report without a session of "+id, err, contract.RelayNodeSessionNotCurrent)
		_, err = r.Cloudly.Call(r.Soon(), assignment, []byte(`{"session":`+named(id)+`,"x":"`+withheld+`"}`))
		wantRefused(t, "push to "+id, err, contract.RelayNodeNotCarried)
	}
	for what, member := range map[string]string{"a number": `7`, "null": `null`, "a list": `["node-e"]`, "nothing": ``} {
		body := strings.Replace(registrationOf(r, "node-e", 1), `"nodeId":"node-e",`, `"`+withheld+`":1,`, 1)
		if member != "" {
			body = strings.Replace(body, `{`, `{"nodeId":`+member+`,`, 1)
		}
		_, err := byHand(t, r).ask(registration, body)
		wantRefused(t, "a nodeId that is "+what, err, contract.RelayNodeNotCarried)
	}
	if _, err := h.ask(protection, string(under(h.session, `"x":1`))); err != nil {
		t.Error(err)
	}
	wantWithheld(t, r.Cloudly.Frames())
}

// R01: the relay's own node is named by the same rule; another name ends the start.
func TestR01_TheRelaysOwnNodeIsNamedByTheSameRule(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.NotStarted())
	for _, id := range []string{"a.b", strings.Repeat("a", 129), "a:b", ""} {
		r.Set("node-id", id)
		if code := r.Run(); code != 1 {
			t.Errorf("node id %q: exit code %d", id, code)
		}
	}
	if got := r.Upstream.Accepted(); got != 0 {
		t.Errorf("cloudly was dialled %d times", got)
	}
}
