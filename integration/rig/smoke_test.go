package rig

import (
	"testing"

	"serve.zone/relay/contract"
)

// The whole program, once through: it starts, registers, becomes ready, carries a
// node's report both ways, and leaves on SIGTERM.
func TestSmoke(t *testing.T) {
	r := New(t)
	r.WaitReady()
	node := r.Node("node-a")
	const method = "reportRuntimeNetworkProtection"
	answer, err := node.Send(r.Soon(), method, []byte(`{"b":1,"a":{"nested":"  spaced "}}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(answer) != `{"status":"accepted"}` {
		t.Errorf("the node got %s", answer)
	}
	received := r.Cloudly.Frames().Received(method)
	sent := node.Frames().Sent(method)
	if len(received) != 1 || len(sent) != 1 || string(received[0].Body) != string(sent[0].Body) {
		t.Errorf("cloudly received %d requests, the node sent %d, or they differ", len(received), len(sent))
	}
	if got := r.Cloudly.ConnectedNodes(); got != 1 {
		t.Errorf("cloudly holds %d nodes", got)
	}
	facts := r.Cloudly.Registrations()[0].Relay
	if facts.NodeID != RelayNode || facts.ListenPort != r.ListenPort() {
		t.Errorf("registered as %+v, bound to port %d", facts, r.ListenPort())
	}
	if code := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := r.Cloudly.Frames().Received(contract.MethodRegisterClusterRelay); len(got) != 1 {
		t.Errorf("%d registrations", len(got))
	}
}
