package forward

import (
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket/envelope"
)

// scan returns what is known of a body.
func scan(t *testing.T, body string) *envelope.Body {
	t.Helper()
	var f envelope.Frame
	if err := envelope.Scan([]byte(`{"method":"m","request":`+body+`,"correlation":{"id":"c","phase":"request"}}`), &f); err != nil {
		t.Fatal(err)
	}
	return &f.Body
}

// wantRefusal compares a decision with a name, "" for none.
func wantRefusal(t *testing.T, what string, got *contract.Refusal, want contract.RefusalName) {
	t.Helper()
	switch {
	case got == nil && want != "":
		t.Errorf("%s passes, want %s", what, want)
	case got != nil && got.Name != want:
		t.Errorf("%s: %s, want %q", what, got.Text(), want)
	case got != nil && (got.Reason == "" || strings.Contains(got.Reason, "node-a")):
		t.Errorf("%s: the reason %q quotes a value or is none", what, got.Reason)
	}
}

const (
	notReady     = contract.RelayNotReady
	notCurrent   = contract.RelayNodeSessionNotCurrent
	notCarried   = contract.RelayNodeNotCarried
	notForwarded = contract.RelayMethodNotForwarded
)

// TestJudgeNodeRequest: every state of a socket against every kind of request.
func TestJudgeNodeRequest(t *testing.T) {
	session := sessionOf("node-a", 1)
	requests := []struct {
		name string
		rt   route
		body string
	}{
		{"registration", route{registers: true}, `{"nodeId":"node-a"}`},
		{"registration of another", route{registers: true}, `{"nodeId":"node-b"}`},
		{"registration without a node", route{registers: true}, `{}`},
		{"own report", route{}, body(session, `"x":1`)},
		{"report of another", route{}, body(sessionOf("node-b", 1), `"x":1`)},
		{"own report of an earlier session", route{}, body(sessionOf("node-a", 0), `"x":1`)},
		{"report without session", route{}, `{"nodeId":"node-a"}`},
		{"report of another without session", route{}, `{"nodeId":"node-b"}`},
		{"configured, own session", route{needsSession: true}, body(session, `"x":1`)},
		{"configured, without session", route{needsSession: true}, `{"nodeId":"node-a"}`},
		{"report with a stream", route{}, body(session, `"x":{"_isVirtualStream":true}`)},
	}
	stands := state{attached: true}
	for _, c := range []struct {
		name   string
		holder holder
		state  state
		want   [11]contract.RefusalName
	}{
		{"bound", holder{node: "node-a", session: []byte(session), confirmed: true}, stands,
			[11]contract.RefusalName{"", notCurrent, notCarried, "", notCurrent, notCurrent, "", notCurrent, "", notCurrent, notForwarded}},
		{"unconfirmed", holder{node: "node-a", session: []byte(session)}, stands,
			[11]contract.RefusalName{"", notCurrent, notCarried, notReady, notReady, notReady, notReady, notReady, notReady, notReady, notForwarded}},
		{"unbound", holder{}, stands,
			[11]contract.RefusalName{"", "", notCarried, notCurrent, notCurrent, notCurrent, notCurrent, notCurrent, notCurrent, notCurrent, notForwarded}},
		{"registering", holder{node: "node-a"}, stands,
			[11]contract.RefusalName{"", notCurrent, notCarried, notCurrent, notCurrent, notCurrent, notCurrent, notCurrent, notCurrent, notCurrent, notForwarded}},
		{"detached", holder{node: "node-a", session: []byte(session), confirmed: true}, state{},
			[11]contract.RefusalName{notReady, notReady, notReady, notReady, notReady, notReady, notReady, notReady, notReady, notReady, notForwarded}},
		{"draining", holder{node: "node-a", session: []byte(session), confirmed: true}, state{attached: true, draining: true},
			[11]contract.RefusalName{notReady, notReady, notReady, notReady, notReady, notReady, notReady, notReady, notReady, notReady, notForwarded}},
		{"ingress", holder{foreign: true}, stands,
			[11]contract.RefusalName{notForwarded, notForwarded, notForwarded, notForwarded, notForwarded, notForwarded, notForwarded, notForwarded, notForwarded, notForwarded, notForwarded}},
	} {
		for i, q := range requests {
			wantRefusal(t, c.name+": "+q.name, judgeNodeRequest(q.rt, scan(t, q.body), c.holder, c.state), c.want[i])
		}
	}
}

// TestJudgePush: every state of a node against every kind of push.
func TestJudgePush(t *testing.T) {
	session := sessionOf("node-a", 1)
	pushes := []string{
		body(session, `"x":1`), body(sessionOf("node-a", 2), `"x":1`), `{"nodeId":"node-a"}`, `{"session":null}`, `[]`,
		body(session, `"x":{"_isVirtualStream":true}`),
	}
	for _, c := range []struct {
		name   string
		holder holder
		state  state
		want   [6]contract.RefusalName
	}{
		{"bound", holder{node: "node-a", session: []byte(session), confirmed: true}, state{attached: true},
			[6]contract.RefusalName{"", notCurrent, notCurrent, notCurrent, notCurrent, notForwarded}},
		{"unconfirmed", holder{node: "node-a", session: []byte(session)}, state{attached: true},
			[6]contract.RefusalName{notCurrent, notCurrent, notCurrent, notCurrent, notCurrent, notForwarded}},
		{"not carried", holder{}, state{attached: true},
			[6]contract.RefusalName{notCarried, notCarried, notCurrent, notCurrent, notCurrent, notForwarded}},
		{"on another socket", holder{node: "node-a", session: []byte(session), confirmed: true}, state{},
			[6]contract.RefusalName{notReady, notReady, notReady, notReady, notReady, notForwarded}},
		{"draining", holder{node: "node-a", session: []byte(session), confirmed: true}, state{attached: true, draining: true},
			[6]contract.RefusalName{notReady, notReady, notReady, notReady, notReady, notForwarded}},
	} {
		for i, push := range pushes {
			wantRefusal(t, fmt.Sprintf("%s: %s", c.name, push), judgePush(scan(t, push), c.holder, c.state), c.want[i])
		}
	}
}

// TestJudgingAllocatesNothing for what passes with the very bytes.
func TestJudgingAllocatesNothing(t *testing.T) {
	session := sessionOf("node-a", 1)
	h := holder{node: "node-a", session: []byte(session), confirmed: true}
	with, without := scan(t, body(session, `"x":1`)), scan(t, `{"nodeId":"node-a"}`)
	if n := testing.AllocsPerRun(100, func() {
		if judgeNodeRequest(route{}, with, h, state{attached: true}) != nil || judgeNodeRequest(route{}, without, h, state{attached: true}) != nil ||
			judgePush(with, h, state{attached: true}) != nil {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSameSession: bytes, or else the value.
func TestSameSession(t *testing.T) {
	long := `{"pad":"` + strings.Repeat("x", maximumSession) + `"}`
	for _, c := range []struct {
		got, held string
		want      bool
	}{
		{`{"a":1,"b":"x"}`, `{"a":1,"b":"x"}`, true},
		{`{ "b":"\u0078", "a":1}`, `{"a":1,"b":"x"}`, true},
		{`{"a":1.0}`, `{"a":1}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`{"A":1}`, `{"a":1}`, false},
		{`null`, `{}`, false},
		{long, long, true},
		{" " + long, long, false},
		{strings.Repeat(" ", maximumSession-2) + `{}`, `{}`, true},
		{strings.Repeat(" ", maximumSession-1) + `{}`, `{}`, false},
	} {
		if got := sameSession([]byte(c.got), []byte(c.held)); got != c.want {
			t.Errorf("%.40s and %.40s: %v", c.got, c.held, got)
		}
	}
}

// TestO14_ConfiguredMethods that must not pass end the start.
func TestO14_ConfiguredMethods(t *testing.T) {
	for _, c := range []struct {
		up, down []string
		ok       bool
	}{
		{nil, nil, true},
		{[]string{"upNew"}, []string{"downNew"}, true},
		{[]string{report}, []string{"applyRuntimeAssignment"}, true}, // as the contract has it
		{[]string{"both"}, []string{"both"}, false},
		{[]string{"applyRuntimeAssignment"}, nil, false},
		{nil, []string{report}, false},
		{[]string{"openRuntimeAssignmentExec"}, nil, false},
		{nil, []string{"holdRuntimeNetworkDnsLeaseRenewals"}, false},
		{[]string{"a b"}, nil, false},
	} {
		if _, err := New(Config{NodeToCloudly: c.up, CloudlyToNode: c.down}); (err == nil) != c.ok {
			t.Errorf("%q, %q: %v", c.up, c.down, err)
		}
	}
}

// TestRoutes: the catalogue's forwarded methods, each in its direction alone,
// with the secrets of contract §18; and a name that is configured although the
// catalogue has it stays as the catalogue has it.
func TestRoutes(t *testing.T) {
	table, err := newRoutes([]string{"upNew", report}, []string{"downNew"})
	if err != nil {
		t.Fatal(err)
	}
	if len(table[up]) != 13 || len(table[down]) != 5 {
		t.Errorf("%d and %d routes", len(table[up]), len(table[down]))
	}
	for method, want := range map[string]route{
		register:                                   {method: register, registers: true, secretRequest: true},
		report:                                     {method: report},
		"getRuntimeRegistryCredential":             {method: "getRuntimeRegistryCredential", secretAnswer: true},
		"getRuntimeManagedVpnCredential":           {method: "getRuntimeManagedVpnCredential", secretAnswer: true},
		"getRuntimeAssignmentSecretMaterial":       {method: "getRuntimeAssignmentSecretMaterial", secretRequest: true, secretAnswer: true},
		"beginRuntimeSecretRecipientEnrollment":    {method: "beginRuntimeSecretRecipientEnrollment", secretRequest: true, secretAnswer: true},
		"completeRuntimeSecretRecipientEnrollment": {method: "completeRuntimeSecretRecipientEnrollment", secretRequest: true, secretAnswer: true},
		"upNew": {method: "upNew", needsSession: true, secretRequest: true, secretAnswer: true},
	} {
		if got, refused := table.find(up, method); got != want || refused != nil {
			t.Errorf("%s: %+v, %v", method, got, refused)
		}
	}
	if got, refused := table.find(down, "downNew"); !got.needsSession || refused != nil {
		t.Errorf("%+v, %v", got, refused)
	}
}
