// Package session_test holds node sessions of the built relay against peers that nobody here wrote: a real
// TypedRequest 8 router as Cloudly and a real TypedRequest 8 client as the node.
package session_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/peers"
	"serve.zone/relay/integration/rig"
)

const nodeID = "node-a"

// join starts Cloudly, a relay that is ready and a node whose socket is open.
func join(t *testing.T) (relay *rig.Rig, node, cloudly *peer) {
	t.Helper()
	cloudly = &peer{t: t, Process: peers.Start(t, "cloudly8.mjs", "--record", "--hostname", rig.OriginHost)}
	url := strings.TrimSuffix(strings.Replace(cloudly.URL(), "ws:", "http:", 1), "/")
	relay = rig.New(t, rig.With("cloudly-url", url), rig.Without("cloudly-ca-file"))
	relay.WaitReady()
	relay.AddSecret("identity", []byte(cloudly.identity()))
	token := relay.Enroll(nodeID).Token
	cloudly.Send(map[string]string{"do": "enroll", "nodeId": nodeID, "token": token})
	node = &peer{t: t, Process: peers.Start(t, "node8.mjs", "--record", "--ca", relay.Path(rig.AuthorityFile),
		"--servername", rig.OriginHost, "--node", nodeID, "--token", token, "wss://"+relay.ListenAddress()+"/")}
	node.Await("open", nil)
	return relay, node, cloudly
}

// call is what a peer is told to call, in the words of its commands.
type call struct {
	Method  string         `json:"method"`
	Request map[string]any `json:"request"`
	Bare    bool           `json:"bare,omitempty"` // without a session

	end end
}

func (c call) tag() string { return c.Request["tag"].(string) }

// outcome is what the real peer made of its call.
type outcome struct {
	Response map[string]any `json:"response"`
	Error    struct {
		Name    string         `json:"name"`
		Message string         `json:"message"`
		Text    string         `json:"text"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

// end is a way in which a peer ends a call that it is asked to end so, and what the peer at the other side of the
// relay makes of it.
type end struct {
	ask   string
	sends int
	right func(outcome) bool
}

func accepted(o outcome) bool {
	return o.Error.Name == "" && o.Response["status"] == "accepted" && o.Response["later"] != nil
}

var ends = []end{
	{"accept", 1, accepted},
	{"refuse", 1, func(o outcome) bool {
		return o.Error.Name == "TypedResponseError" && o.Error.Text == "not-today: é \u2028 \"\\" &&
			o.Error.Data["code"] == "not-today" && o.Error.Data["later"] != nil
	}},
	{"fail", 1, func(o outcome) bool {
		return o.Error.Name == "TypedResponseError" && o.Error.Text == "Internal server error" && len(o.Error.Data) == 0
	}},
	{"nothing", 1, func(o outcome) bool { return o.Error.Name == "" && o.Response == nil }},
	{"retry", 3, accepted},
}

// called sends a command that calls, and returns the outcomes.
func (p *peer) called(command map[string]any) []outcome {
	p.t.Helper()
	p.Send(command)
	var called struct {
		Answers []outcome `json:"answers"`
	}
	p.Await("called", &called)
	return called.Answers
}

// calls sends a command with these calls.
func (p *peer) calls(command map[string]any, calls ...call) []outcome {
	p.t.Helper()
	command = maps.Clone(command)
	command["calls"] = calls
	return p.called(command)
}

var (
	report = map[string]any{"do": "report"}
	push   = map[string]any{"do": "push", "nodeId": nodeID}
)

// callsOn returns a call of every method that is forwarded on a hop, and of the first one a call for each end.
func callsOn(hop contract.Hop) []call {
	var calls []call
	add := func(method string, e end) {
		tag := fmt.Sprintf("%s-%d", method, len(calls))
		calls = append(calls, call{Method: method, Request: map[string]any{"tag": tag, "ask": e.ask}, end: e})
	}
	for _, m := range contract.Methods() {
		if m.Class == contract.Forwarded && m.Takes(hop) && m.Name != contract.MethodRegisterPalletRuntimeSession {
			add(m.Name, ends[0])
		}
	}
	for _, e := range ends[1:] {
		add(calls[0].Method, e)
	}
	// So large that the carrier sends it in pieces, in both directions since it is answered with.
	calls[0].Request["text"] = strings.Repeat("é€😀\u2028", 30_000)
	return calls
}

// R29: between real peers of another implementation, as node and as Cloudly, registration, replay, rotation,
// reports and pushes cross byte for byte, in spellings of their own.
func TestR29_RealPeersOnBothSides(t *testing.T) {
	relay, node, cloudly := join(t)
	ids := minted{}

	sessions := map[string]string{}
	for _, r := range []struct {
		tag        string
		generation int
	}{{"registration", 1}, {"replay", 1}, {"rotation", 2}} {
		o := node.called(map[string]any{"do": "register", "tag": r.tag, "generation": r.generation})[0]
		if o.Error.Name != "" {
			t.Fatalf("%s refused: %+v", r.tag, o.Error)
		}
		x := between(node, cloudly, r.tag, 0)
		x.check(t, ids)
		x.sent.unusual(t, "request")
		x.answered.unusual(t, "response")
		sessions[r.tag] = string(x.returned.members["response"])
	}
	if sessions["replay"] != sessions["registration"] || sessions["rotation"] == sessions["registration"] {
		t.Error("a replay was answered with another session, or a rotation with the same")
	}

	bare := call{Method: "reportRuntimeNetworkProtection", Bare: true, end: ends[0],
		Request: map[string]any{"tag": "bare", "about": map[string]string{"nodeId": nodeID}}}
	pass(t, node, cloudly, report, append(callsOn(contract.NodeToRelay), bare), ids)
	pass(t, cloudly, node, push, callsOn(contract.CloudlyToRelay), ids)

	// What the relay refuses itself reads as a refusal of the peer.
	for asker, command := range map[*peer]map[string]any{node: report, cloudly: push} {
		const name = string(contract.RelayMethodNotForwarded)
		o := asker.calls(command, call{Method: "openRuntimeAssignmentExec", Request: map[string]any{}})[0]
		if o.Error.Name != "TypedResponseError" || !strings.HasPrefix(o.Error.Text, name) || o.Error.Data["code"] != name {
			t.Errorf("%s: %+v", command["do"], o)
		}
	}

	cloudly.find(func(f frame) bool { return f.answer && f.method == contract.DefaultMethodGetConfiguration })
	if lines := relay.Log("cloudly-configuration-unrecognised"); len(lines) > 0 {
		t.Error("the relay did not read the configuration of a real router")
	}
}

// pass has one peer call the other, all at once, and holds every call to R29.
func pass(t *testing.T, asker, server *peer, command map[string]any, calls []call, ids minted) {
	t.Helper()
	outcomes := asker.calls(command, calls...)
	var order []string
	for i, c := range calls {
		order = append(order, c.tag())
		if !c.end.right(outcomes[i]) {
			t.Errorf("%s: the caller made of it %+v", c.tag(), outcomes[i])
			continue
		}
		first := asker.request(true, c.tag(), 0)
		for nth, again := 0, true; again; nth++ {
			x := between(asker, server, c.tag(), nth)
			x.check(t, ids)
			x.sent.unusual(t, "request")
			if x.sent.id != first.id || nth > 0 && x.sent.instance == first.instance {
				t.Errorf("%s: send %d is no retry of the first", c.tag(), nth)
			}
			again = x.returned.members["retry"] != nil
			if again != (nth < c.end.sends-1) {
				t.Errorf("%s: answer %d asks for a retry: %t", c.tag(), nth, again)
			}
		}
	}
	if diff := cmp.Diff(order, server.arrived(order)); diff != "" {
		t.Errorf("order of arrival (-sent +arrived):\n%s", diff)
	}
}
