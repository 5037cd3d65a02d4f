package simulate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
)

const registerNode = contract.MethodRegisterPalletRuntimeSession

func TestNodeRegistrationIsJudged(t *testing.T) {
	older := contract.Offer{InterfacesVersion: "31.0.0", MinimumPeerVersion: "31.0.0"}
	offer := contract.ProtocolRefusal{Reason: contract.MajorMismatch, Refusing: DefaultOffer(), Refused: older}
	const invalid = "invalid registerPalletRuntimeSession request: "
	const authorities = invalid + "resolvedAuthorities: is not a sorted subset of the workload authorities"
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		credential := s.credential("node-a")
		body := registration("node-a", credential, nonceA).AppendJSON(nil)
		foreign := registration("node-x", s.credential("node-x"), nonceA).AppendJSON(nil)
		if err := s.EnrollForeignNode("node-x"); err != nil {
			t.Fatal(err)
		}
		whole := string(DefaultOffer().AppendJSON(nil))
		change := func(old, new string) []byte { return swap(t, body, old, new) }
		const bearer = "the node's credential is not current"
		c.refuses(registerNode,
			unread(t, "no offer", contract.ReadOffer, change(`"protocol"`, `"novel"`)),
			wrong{"offer before shape and bearer", swap(t, change(whole, string(older.AppendJSON(nil))), `"nodeId"`, `"novel"`),
				offer.Text(), string(offer.AppendData(nil))},
			wrong{"unknown member", change(`{"nodeId"`, `{"novel":1,"nodeId"`), invalid + "body: has a member that is not known", ""},
			wrong{"missing member", change(`"nodeInstanceNonce":"`+nonceA+`",`, ``), invalid + "nodeInstanceNonce: is missing", ""},
			wrong{"node id", change(`"node-a"`, `"a.b"`), invalid + "nodeId: is not a node id", ""},
			wrong{"nonce", change(nonceA, strings.ToUpper("aaaaaaaa-1111-4111-8111-111111111111")), invalid + "nodeInstanceNonce: is not a canonical lower-case uuid", ""},
			wrong{"generation", change(`"generation":1`, `"generation":0`), invalid + "credential.generation: is not a counter", ""},
			wrong{"token", change(`"`+credential.Token+`"`, `7`), invalid + "credential.token: is not a text", ""},
			wrong{"authorities out of order", change(`["network","storage"]`, `["storage","network"]`), authorities, ""},
			wrong{"authority twice", change(`["network","storage"]`, `["network","network"]`), authorities, ""},
			wrong{"unknown authority", change(`["network","storage"]`, `["network","compute"]`), authorities, ""},
			wrong{"authorities are no texts", change(`["network","storage"]`, `[1]`), invalid + "resolvedAuthorities: is not an array of strings", ""},
			wrong{"unknown node", change(`node-a`, `node-q`), bearer, ""},
			wrong{"foreign node", foreign, bearer, ""},
			wrong{"wrong bearer", change(credential.Token, "palletToken_other"), bearer, ""},
			wrong{"another node's bearer", registration("node-b", credential, nonceA).AppendJSON(nil), bearer, ""},
			wrong{"wrong generation", change(`"generation":1`, `"generation":2`), bearer, ""},
		)
		if state, _ := s.Node("node-a"); state.Session != nil {
			t.Error("a refused registration makes a session")
		}
		want := `{"session":{"controller":{"kind":"cloudly"},"clusterId":"cluster-a","nodeId":"node-a","runtimeNamespace":"default",` +
			`"credentialGeneration":1,"sessionEpoch":1},"protocol":` + whole + `}`
		if got := c.must(registerNode, body); got != want {
			t.Errorf("answer %s, want %s", got, want)
		}
		wantViolations(t, s.Violations())
	})
}

// R32: the simulated Cloudly answers a replay with the same session and a rotation with
// another, refuses a conflicting repetition, and leaves other nodes alone.
func TestR32_ReplayRotationAndConflict(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		c := s.relay(nil)
		first := s.credential("node-a")
		a := c.node("node-a", first, nonceA)
		other := c.node("node-b", s.credential("node-b"), nonceA)
		if replay := c.node("node-a", first, nonceA); string(replay) != string(a) {
			t.Errorf("a replay is answered %s, want %s", []byte(replay), []byte(a))
		}
		conflict := registration("node-a", first, nonceA)
		conflict.Authorities = []string{"network"}
		c.refuses(registerNode, wrong{"replay with other authorities", conflict.AppendJSON(nil),
			"the registration repeats another one with other resolved authorities", ""})

		second, err := s.RotateNodeCredential("node-a")
		if err != nil {
			t.Fatal(err)
		}
		rotated := c.node("node-a", second, nonceA)
		restarted := c.node("node-a", second, nonceB)
		for i, session := range []contract.Raw{a, rotated, restarted} {
			epoch := compose().integer("sessionEpoch", int64(i+1)).end()
			if !strings.HasSuffix(string(session), string(epoch[1:])) {
				t.Errorf("session %d is %s", i, []byte(session))
			}
		}
		if replay := c.node("node-a", second, nonceA); string(replay) != string(rotated) {
			t.Error("the replay of an earlier process start is not its historical binding")
		}
		want := NodeState{Session: restarted, Epoch: 3, Generation: 2, Nonce: nonceB, Connected: true}
		got, _ := s.Node("node-a")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("node-a (-want +got):\n%s", diff)
		}
		if got, _ := s.Node("node-b"); string(got.Session) != string(other) || !got.Connected || s.ConnectedNodes() != 2 {
			t.Errorf("node-b was disturbed: %+v", got)
		}
		c.refuses(registerNode, wrong{"bearer of the generation before", registration("node-a", first, nonceB).AppendJSON(nil),
			"the node's credential is not current", ""})
	})
}

func TestNodesAreBehindTheNewestSocketOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		credential := s.credential("node-a")
		session := s.relay(nil).node("node-a", credential, nonceA)
		c := s.relay(nil)
		if s.ConnectedNodes() != 0 {
			t.Error("a session moves to a new socket by itself")
		}
		if _, err := s.CallNode(t.Context(), "node-a", "applyRuntimeAssignment", []byte("{}")); err != ErrNodeNotConnected {
			t.Errorf("a push for it: %v", err)
		}
		c.refuses("reportRuntimeNetworkProtection", wrong{"unconfirmed", under(session, "{}"), "the session is not registered over this socket", ""})
		wantViolations(t, s.Violations(), UnconfirmedSession)
		if replay := c.node("node-a", credential, nonceA); string(replay) != string(session) || s.ConnectedNodes() != 1 {
			t.Error("the replay does not move it")
		}
		c.must("reportRuntimeNetworkProtection", under(session, "{}"))
	})
}

func TestNodeRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStage(t, nil)
		if _, err := s.EnrollNode("a.b"); err == nil {
			t.Error("a.b is enrolled")
		}
		if _, err := s.RotateNodeCredential("node-q"); err == nil {
			t.Error("an unknown node's credential is rotated")
		}
		if err := s.SetNodeCredential("node-a", NodeCredential{4, "marked"}); err != nil || s.credential("node-a") != (NodeCredential{4, "marked"}) {
			t.Errorf("credential %v, %v", s.credential("node-a"), err)
		}
		if err := s.RemoveNode("node-a"); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Node("node-a"); ok {
			t.Error("a removed node is known")
		}
		if err := s.RemoveNode("node-a"); err == nil {
			t.Error("it is removed twice")
		}
		if got := s.credential("node-a"); got != (NodeCredential{4, "marked"}) {
			t.Errorf("brought back with %v", got)
		}
		for _, id := range []string{"-abc", "_abc", strings.Repeat("a", 128)} {
			if _, err := s.EnrollNode(id); err != nil {
				t.Errorf("R01: %v", err)
			}
		}
	})
}
