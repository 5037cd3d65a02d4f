package ingress_test

import (
	"fmt"
	"strings"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// hand is an ingress's socket in the hands of a test: it sends what no right ingress
// would, and acts on nothing.
type hand struct {
	*rig.Socket
	c *cluster
	// heard are the requests of the relay that came before an answer which was waited
	// for. Hints among them were answered.
	heard []simulate.Message
}

// byHand opens a socket to the relay and registers nothing.
func (c *cluster) byHand() *hand { c.t.Helper(); return &hand{Socket: c.DialNode(), c: c} }

// ingress is byHand with the role of a node's ingress.
func (c *cluster) ingress(node string) *hand {
	c.t.Helper()
	h := c.byHand()
	if _, err := h.ask(registering, c.registration(node)); err != nil {
		c.t.Fatalf("register the ingress of %s: %v", node, err)
	}
	return h
}

// registration is the body that registers a node's ingress.
func (c *cluster) registration(node string) string { return registrationWith(node, c.bearer) }

// registrationWith is registration with another bearer. Its members stand in contract
// order.
func registrationWith(node, bearer string) string {
	return fmt.Sprintf(`{"bearer":%q,"version":"3.1.0","nodeId":%q,"protocol":%s}`, bearer, node, relayOffer)
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

// request returns the next message, which must be a request of this method.
func (h *hand) request(method string) simulate.Message {
	h.c.t.Helper()
	if len(h.heard) > 0 {
		m := h.heard[0]
		h.heard = h.heard[1:]
		return m
	}
	m := h.next()
	if !m.Request || m.Method != method {
		h.c.t.Fatalf("the next message is %.300s, want a request of %s", m.Text, method)
	}
	return m
}

// answer returns the answer to a request that was sent. Hints before it are answered and
// kept.
func (h *hand) answer(method, id string) (contract.Raw, error) {
	h.c.t.Helper()
	m := h.next()
	for ; m.Request; m = h.next() {
		h.heard = append(h.heard, m)
		h.reply(m, `{}`)
	}
	if m.ID != id || m.Method != method {
		h.c.t.Fatalf("the answer to %s is %.300s", method, m.Text)
	}
	if m.Refused {
		return nil, &typedsocket.RemoteError{Text: m.ErrorText, Data: m.ErrorData}
	}
	return contract.Raw(m.Body), nil
}

// ask sends a request and returns the answer.
func (h *hand) ask(method, body string) (contract.Raw, error) {
	h.c.t.Helper()
	return h.answer(method, h.Request(method, body))
}

// reply answers a request that the socket received.
func (h *hand) reply(request simulate.Message, response string) {
	h.c.t.Helper()
	h.Send(`{"method":"` + request.Method + `","request":null,"response":` + response + `,"requestInstanceId":"` + request.Instance +
		`","correlation":{"id":"` + request.ID + `","phase":"response"}}`)
}

// wantTable asks for the table and wants exactly these bytes, "null" for none.
func (h *hand) wantTable(what, table string) {
	h.c.t.Helper()
	got, err := h.ask(asking, `{"knownRevision":null}`)
	if want := `{"table":` + strings.TrimSpace(table) + `}`; err != nil || string(got) != want {
		h.c.t.Errorf("%s: answered %.300s, %v, want %.300s", what, got, err, want)
	}
}

// wantHint takes the next request, which must be a hint of this revision and nothing
// else, and answers it.
func (h *hand) wantHint(revision int64) {
	h.c.t.Helper()
	kept := len(h.heard) > 0
	m := h.request(hinting)
	if want := fmt.Sprintf(`{"revision":%d}`, revision); string(m.Body) != want {
		h.c.t.Errorf("the hint says %.300s, want %s", m.Body, want)
	}
	if !kept {
		h.reply(m, `{}`)
	}
}

// wantNoHint checks that no hint came before the answer which was waited for last.
func (h *hand) wantNoHint(what string) {
	h.c.t.Helper()
	for _, m := range h.heard {
		h.c.t.Errorf("%s: heard %.300s", what, m.Text)
	}
	h.heard = nil
}

// wantRefusedHere asks and wants a refusal by name.
func (h *hand) wantRefusedHere(what, method, body string, name contract.RefusalName) {
	h.c.t.Helper()
	_, err := h.ask(method, body)
	h.c.wantRefused(what, err, name, "")
}
