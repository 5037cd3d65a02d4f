package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	controllerText = `{"kind" : "cloudly","id":"c1"}`
	sessionText    = `{ "nodeId":"-abc","controller":` + controllerText + `,"clusterId":"cluster-a",` +
		`"runtimeNamespace":"ns:1","sessionEpoch":7,"extra":[{"a":1.50}]}`
	sessionAnswerText = `{"protocol":{"novel":"\ud800"},"session": ` + sessionText + ` }`
)

// R29: a session is kept and written with the bytes that came, and does not alias the
// frame.
func TestR29_SessionBindingKeepsItsBytes(t *testing.T) {
	body := []byte(sessionAnswerText)
	got, err := ReadSessionBinding(body, "-abc")
	if err != nil {
		t.Fatal(err)
	}
	clear(body) // what was read must not alias the frame
	want := SessionBinding{"cluster-a", NodeScope{Raw(controllerText), "-abc", "ns:1"}, Raw(sessionText)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if string(got.AppendJSON(nil)) != sessionText {
		t.Error("the session is not written as it came")
	}
}

func TestSessionBinding(t *testing.T) {
	read := func(body []byte) (SessionBinding, error) { return ReadSessionBinding(body, "-abc") }
	checkBodies(t, read, []bodyCase{
		{"whole", sessionAnswerText, nil},
		{"missing session", `{"protocol":{}}`, []string{`session: is missing`}},
		{"session null", `{"session":null}`, []string{`session: is not an object`}},
		{"session twice", with(t, sessionAnswerText, `"protocol":{"novel":"\ud800"}`, `"\u0073ession":{}`), []string{
			`session.controller: is missing`, `session.clusterId: is missing`, `session.nodeId: is missing`,
			`session.runtimeNamespace: is missing`, `session: is given twice`}},
		{"missing inside", `{"session":{"controller":{}}}`, []string{`session.controller.kind: is missing`,
			`session.clusterId: is missing`, `session.nodeId: is missing`, `session.runtimeNamespace: is missing`}},
		{"kinds", `{"session":{"controller":"cloudly","clusterId":1,"nodeId":[],"runtimeNamespace":null}}`, []string{
			`session.controller: is not an object`, `session.clusterId: is not a string`,
			`session.nodeId: is not a string`, `session.runtimeNamespace: is not a string`}},
		{"onebox", with(t, sessionAnswerText, `"cloudly"`, `"onebox"`), []string{`session.controller.kind: is not cloudly`}},
		{"other node", with(t, sessionAnswerText, `"-abc"`, `"_abc"`), []string{`session.nodeId: is not the node that registered`}},
		{"grammars", with(t, with(t, sessionAnswerText, `"cluster-a"`, `"-a"`), `"ns:1"`, `""`), []string{
			`session.clusterId: is not a canonical identifier`, `session.runtimeNamespace: is not a canonical identifier`}},
		{"repeated inside", with(t, sessionAnswerText, `{"a":1.50}`, `{"a":1,"\u0061":2}`), []string{
			`session: an ignored member repeats a name or holds a lone surrogate`}},
		{"repeated ignored", with(t, sessionAnswerText, `"sessionEpoch":7`, `"e":7,"e":7`), []string{`session: gives an ignored member twice`}},
		{"surrogate inside", with(t, sessionAnswerText, `1.50`, `"\udc00"`), []string{
			`session: an ignored member repeats a name or holds a lone surrogate`}},
		{"prototype", with(t, sessionAnswerText, `"sessionEpoch":7`, `"\u005f_proto__":7`), []string{`session.__proto__: is not allowed`}},
		{"prototype of the controller", with(t, sessionAnswerText, `"id":"c1"`, `"__proto__":{}`), []string{`session.controller.__proto__: is not allowed`}},
	})
}

// R01: the node of a session is named by the rule of nodes.
func TestR01_SessionBindingNodeID(t *testing.T) {
	for id, want := range nodeIDs {
		body := []byte(with(t, sessionAnswerText, `"-abc"`, string(appendString(nil, id))))
		if _, err := ReadSessionBinding(body, id); (err == nil) != want {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestNodeScopeEqual(t *testing.T) {
	scope := NodeScope{Raw(`{"kind":"cloudly","id":"c1"}`), "a", "ns"}
	for _, tc := range []struct {
		other NodeScope
		want  bool
	}{
		{scope, true},
		{NodeScope{Raw(`{ "id":"c1", "kind":"cloudly" }`), "a", "ns"}, true},
		{NodeScope{Raw(`{"kind":"cloudly","id":"c2"}`), "a", "ns"}, false},
		{NodeScope{Raw(`{"kind":"cloudly"}`), "a", "ns"}, false},
		{NodeScope{scope.Controller, "b", "ns"}, false},
		{NodeScope{scope.Controller, "a", "ns2"}, false},
		{NodeScope{nil, "a", "ns"}, false},
	} {
		if got := scope.Equal(tc.other); got != tc.want {
			t.Errorf("%+v: got %v", tc.other, got)
		}
	}
}

func FuzzReadSessionBinding(f *testing.F) {
	f.Add([]byte(sessionAnswerText), "-abc")
	f.Add([]byte(`{"session":{"controller":{"kind":"cloudly"}},"session":1}`), "a")
	f.Fuzz(func(t *testing.T, body []byte, nodeID string) {
		got, err := ReadSessionBinding(body, nodeID)
		if err != nil {
			checkReasons(t, err)
			return
		}
		if got.Scope.NodeID != nodeID || !IsNodeID(nodeID) {
			t.Errorf("took %q for %q", got.Scope.NodeID, nodeID)
		}
		again, err := ReadSessionBinding(append(got.AppendJSON([]byte(`{"session":`)), '}'), nodeID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Error(diff)
		}
	})
}
