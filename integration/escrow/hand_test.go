package escrow_test

import (
	"bytes"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// hand is a node's socket in the hands of a test: it sends what no right node would,
// and acts on nothing.
type hand struct {
	*rig.Socket
	c       *cluster
	session contract.Raw // once registered
}

// byHand opens a socket to the relay and registers nothing.
func (c *cluster) byHand() *hand { c.t.Helper(); return &hand{Socket: c.DialNode(), c: c} }

// register registers a node, on any process start of it, and holds the session.
func (h *hand) register(id string) {
	h.c.t.Helper()
	answer, err := h.ask(registration, h.c.registering(id))
	if err != nil {
		h.c.t.Fatalf("register %s: %v", id, err)
	}
	binding, err := contract.ReadSessionBinding(answer, id)
	if err != nil {
		h.c.t.Fatal(err)
	}
	h.session = bytes.Clone(binding.Received)
}

// registering is the body that registers a node with its credential.
func (c *cluster) registering(id string) string {
	c.t.Helper()
	return string(simulate.NodeRegistration{
		NodeID: id, Credential: c.Enroll(id), Nonce: "6b1f0c8e-0d5a-4c52-9f0e-2f7e4f3c9a11",
		Authorities: []string{"network"}, Offer: simulate.DefaultOffer(),
	}.AppendJSON(nil))
}

// next returns the next message.
func (h *hand) next() simulate.Message {
	h.c.t.Helper()
	binary, text := h.Receive()
	m, ok := simulate.Frame{Text: text, Binary: binary}.Message()
	if !ok {
		h.c.t.Fatalf("no envelope: %.300q", text)
	}
	return m
}

// ask sends a request and returns the answer, which is the next message: nothing else
// has come meanwhile.
func (h *hand) ask(method, body string) (contract.Raw, error) {
	h.c.t.Helper()
	id := h.Request(method, body)
	m := h.next()
	if m.Request || m.ID != id {
		h.c.t.Fatalf("the answer to %s is %.300s", method, m.Text)
	}
	if m.Refused {
		return nil, &typedsocket.RemoteError{Text: m.ErrorText, Data: m.ErrorData}
	}
	return contract.Raw(m.Body), nil
}
