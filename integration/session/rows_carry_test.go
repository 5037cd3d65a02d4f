package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// R28: a hundred nodes register and report, Cloudly sees one socket, and each node gets its own answer.
func TestR28_ManyNodesOneUpstreamSocket(t *testing.T) {
	r := ready(t)
	r.Cloudly.Handle(protection, func(id string, _ []byte) ([]byte, error) { return []byte(`{"to":"` + id + `"}`), nil })
	const count = 100
	nodes := r.Nodes(count)
	var all sync.WaitGroup
	for i, node := range nodes {
		ctx := r.Soon()
		all.Go(func() {
			want := fmt.Sprintf(`{"to":"node-%d"}`, i+1)
			for range 3 {
				if got, err := node.Send(ctx, protection, []byte(`{"x":1}`)); err != nil || string(got) != want {
					t.Errorf("node-%d was answered %s, %v", i+1, got, err)
				}
			}
		})
	}
	all.Wait()
	if got := r.Cloudly.ConnectedNodes(); got != count {
		t.Errorf("cloudly holds %d nodes, want %d", got, count)
	}
	if opened, accepted, standing := r.Cloudly.Opened(), r.Upstream.Accepted(), r.Upstream.Standing(); opened != 1 || accepted != 1 || standing != 1 {
		t.Errorf("the relay opened %d connections, %d of them sockets, and %d stand; want one of each", accepted, opened, standing)
	}
	for i, node := range nodes {
		if node.Dials() != 1 {
			t.Errorf("node-%d dialled %d times", i+1, node.Dials())
		}
	}
}

// R29: what is registered, replayed, rotated and refused crosses byte for byte, however it is spelled, and so does any
// other call. Of the envelope nothing else does.
func TestR29_BytesCrossUnchanged(t *testing.T) {
	r := ready(t)
	ids := minted{}
	node := r.Node("node-a", oddly(t))

	// An answer spelled oddly has to bind to the session, which is known only now.
	first := crossings(t, registration, node.Frames(), r.Cloudly.Frames())[0]
	respelled := odd(t, first.answered.members["response"])
	injected := `,"authInfo":{"jwt":"` + foreign + `cloudly"},"localData":"` + foreign + `cloudly"`
	r.Cloudly.Script(registration, simulate.Respond([]byte(string(respelled)+injected)),
		simulate.Refuse("not-today: \u00e9 \u2028 \"\\", []byte(inner)))
	if err := node.Register(r.Soon()); err != nil {
		t.Errorf("a replay that was answered oddly: %v", err)
	}
	var refused *typedsocket.RemoteError
	if err := node.Register(r.Soon()); !errors.As(err, &refused) || string(refused.Data) != inner {
		t.Errorf("a refused registration: %v", err)
	}
	if err := node.Rotate(r.Soon(), r.RotateNode("node-a")); err != nil {
		t.Errorf("a rotation: %v", err)
	}

	large := `"text":"` + strings.Repeat("\u00e9\u20ac\U0001f600\\u00e9", 10_000) + `"`
	for _, member := range []string{`"inner":` + inner, large} {
		r.Cloudly.Script(protection, simulate.Respond([]byte("\t{"+member+" }"+injected)))
		if got, err := node.Send(r.Soon(), protection, []byte("{"+member+"}")); err != nil || string(got) != "{"+member+" }" {
			t.Errorf("the node was answered %.200q, %v", got, err)
		}
		body := string(odd(t, under(bound(t, node), member)))
		node.Script(assignment, simulate.Respond([]byte("{"+member+" }"+strings.ReplaceAll(injected, "cloudly", "node"))))
		if got, err := r.Cloudly.Call(r.Soon(), assignment, []byte(body)); err != nil || string(got) != "{"+member+" }" {
			t.Errorf("cloudly was answered %.200q, %v", got, err)
		}
	}
	for _, method := range []string{registration, protection} {
		for _, x := range crossings(t, method, node.Frames(), r.Cloudly.Frames()) {
			x.check(t, ids)
			if !strings.Contains(string(x.sent.members["request"]), apart) {
				t.Errorf("the node spelled %s as everybody does", method)
			}
		}
	}
	for _, x := range crossings(t, assignment, r.Cloudly.Frames(), node.Frames()) {
		x.check(t, ids)
	}
}

// sender sends a body of a method.
type sender func(ctx context.Context, method string, body []byte) (contract.Raw, error)

// scripted is a peer that answers as it is told.
type scripted interface {
	Script(method string, steps ...simulate.Step)
}

// passAll sends a method with each kind of answer: an odd one, a refusal, a failure without a name, and an error that is
// spelled oddly.
func passAll(t *testing.T, r *rig.Rig, send sender, server scripted, method string, body []byte) {
	t.Helper()
	answer := `[` + inner + " ,\n" + inner + `]`
	const text, data = "not-today: \u00e9 \u2028 \"\\", `{ "code" : "not-today","n":1.0 }`
	const failure = "Internal server error"
	server.Script(method, anyway(answer), simulate.Refuse(text, []byte(data)), simulate.Refuse(failure, nil),
		anyway(`null,"error":{ "data" : `+data+`,"later":`+inner+`,"text":"n\u006ft-today" }`))
	if got, err := send(r.Soon(), method, body); err != nil || string(got) != answer {
		t.Errorf("%s was answered %q, %v", method, got, err)
	}
	for _, want := range []typedsocket.RemoteError{{Text: text, Data: []byte(data)}, {Text: failure, Data: []byte("{}")}, {Text: "not-today", Data: []byte(data)}} {
		var refused *typedsocket.RemoteError
		if _, err := send(r.Soon(), method, body); !errors.As(err, &refused) || refused.Text != want.Text || string(refused.Data) != string(want.Data) {
			t.Errorf("%s was refused with %v", method, err)
		}
	}
}

// wantCrossed holds every call of these methods to R29.
func wantCrossed(t *testing.T, methods []string, asker, server *simulate.FrameLog) {
	t.Helper()
	ids := minted{}
	for _, method := range methods {
		for _, x := range crossings(t, method, asker, server) {
			x.check(t, ids)
		}
	}
}

// R36: each of the twelve methods passes from a node to Cloudly byte for byte, with answers of every kind.
func TestR36_EveryNamedMethodPassesToCloudly(t *testing.T) {
	r := ready(t)
	node := r.Node("node-a", oddly(t))
	for _, method := range fromNodes {
		if method == registration { // which Pallet composes itself; the first one made the session
			r.Cloudly.Script(method, simulate.Refuse("not-today: x", []byte(inner)))
			if err := node.Register(r.Soon()); err == nil {
				t.Error("a refused registration was taken for accepted")
			}
			continue
		}
		passAll(t, r, node.SendBody, r.Cloudly, method, odd(t, under(bound(t, node), `"inner":`+inner)))
	}
	wantCrossed(t, fromNodes, node.Frames(), r.Cloudly.Frames())
}

// further are names that nobody but a configuration knows (contract O14).
var further = rig.Document("protocol:\n  forward:\n" +
	"    nodeToCloudly: [reportFleetCutoverBundle]\n" +
	"    cloudlyToNode: [pushRuntimeSigningAuthority, pushSignedRuntimeNetworkProjection]\n")

// R37: each of the four methods passes from Cloudly to a node byte for byte, and so do the configured names, which pass
// one way each and under a session alone.
func TestR37_EveryNamedMethodPassesToNodes(t *testing.T) {
	up, down := "reportFleetCutoverBundle", []string{"pushRuntimeSigningAuthority", "pushSignedRuntimeNetworkProjection"}
	r := ready(t, further, rig.Cloudly(func(c *simulate.CloudlyConfig) { c.NodeMethods = []string{up} }))
	node := r.Node("node-a", func(c *simulate.PalletConfig) { c.PushMethods = down })
	session := bound(t, node)
	body := odd(t, under(session, `"inner":`+inner))
	for _, method := range append(down, toNodes...) {
		passAll(t, r, r.Cloudly.Call, node, method, body)
	}
	wantCrossed(t, append(down, toNodes...), r.Cloudly.Frames(), node.Frames())
	passAll(t, r, node.SendBody, r.Cloudly, up, body)
	wantCrossed(t, []string{up}, node.Frames(), r.Cloudly.Frames())

	for _, c := range []struct {
		send   sender
		method string
		body   []byte
		name   contract.RefusalName
	}{
		{node.SendBody, down[0], under(session, `"x":"`+withheld+`"`), contract.RelayMethodNotForwarded},
		{r.Cloudly.Call, up, under(session, `"x":"`+withheld+`"`), contract.RelayMethodNotForwarded},
		{node.SendBody, up, []byte(`{"nodeId":"node-a","x":"` + withheld + `"}`), contract.RelayNodeSessionNotCurrent},
		{r.Cloudly.Call, down[0], []byte(`{"nodeId":"node-a","x":"` + withheld + `"}`), contract.RelayNodeSessionNotCurrent},
	} {
		_, err := c.send(r.Soon(), c.method, c.body)
		wantRefused(t, c.method+" "+string(c.body), err, c.name)
	}
	wantCarried(t, r, node, "node-a")
	wantWithheld(t, node.Frames())
	wantWithheld(t, r.Cloudly.Frames())
}

// R37, O14: names that the contract keeps end the start.
func TestR37_KeptNamesCannotBeConfigured(t *testing.T) {
	t.Parallel()
	for _, lists := range []string{
		"nodeToCloudly: [openRuntimeAssignmentExec]", "cloudlyToNode: [registerClusterRelay]", "nodeToCloudly: [applyRuntimeAssignment]",
		"cloudlyToNode: [reportRuntimeAssignmentLogs]", "nodeToCloudly: [getIdentityByToken]", "nodeToCloudly: [a]\n    cloudlyToNode: [a]",
	} {
		r := rig.New(t, rig.NotStarted(), rig.Document("protocol:\n  forward:\n    "+lists+"\n"))
		if code := r.Run(); code != 1 {
			t.Errorf("%s: exit code %d", lists, code)
		}
		if got := r.Upstream.Accepted(); got != 0 {
			t.Errorf("%s: cloudly was dialled", lists)
		}
	}
}

// R44: what was observed under an earlier session passes inside a body under the current one, and under nothing else.
func TestR44_HistoricalBodiesPassUnderTheCurrentSession(t *testing.T) {
	r := ready(t)
	node := r.Node("node-a")
	earlier := bound(t, node)
	if err := node.Rotate(r.Soon(), r.RotateNode("node-a")); err != nil {
		t.Fatal(err)
	}
	current := bound(t, node)
	if string(earlier) == string(current) {
		t.Fatal("the rotation brought no other session")
	}
	methods := []string{
		"reportRuntimeAssignmentObservation", "reportRuntimeAssignmentTerminalReceipt",
		"reportRuntimeNetworkProtection", "reportRuntimeNetworkProjectionApplication",
	}
	for _, method := range methods {
		body := `{"observation":{"session":` + string(earlier) + `,"load":0.25},"session":` + string(current) + `}`
		if _, err := node.SendBody(r.Soon(), method, []byte(body)); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	wantCrossed(t, methods, node.Frames(), r.Cloudly.Frames())
	for _, method := range methods {
		_, err := node.SendBody(r.Soon(), method, under(earlier, `"x":"`+withheld+`"`))
		wantRefused(t, method+" under the earlier session", err, contract.RelayNodeSessionNotCurrent)
	}
	wantCarried(t, r, node, "node-a")
	wantWithheld(t, r.Cloudly.Frames())
}
