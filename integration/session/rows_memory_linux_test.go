package session_test

import (
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// R30: nothing of a node's bearer is left in the whole process, whatever became of its registration: each buffer that it
// was read into or grew in is zeroed before it is lent again. A WebSocket masks what a client sends, and the relay what it
// forwards, so what crypto/tls keeps of a record is no text; that it is written over by the next one is held by the test
// of the whole appliance.
func TestR30_NothingOfABearerIsLeftInTheProcess(t *testing.T) {
	r := ready(t)
	want := func(what, token string) {
		t.Helper()
		r.Eventually("a bearer "+what+" to be forgotten", func() error {
			if n := r.Copies(token); n > 0 {
				return fmt.Errorf("%d copies lie in the memory of the relay", n)
			}
			return nil
		})
	}
	if r.Copies(r.Cloudly.Authorization()) == 0 {
		t.Error("the bearer that the relay keeps was not found in its memory: the search is blind")
	}

	a := r.Node("node-a")
	want("that was accepted", r.Enroll("node-a").Token)
	next := r.RotateNode("node-a")
	if err := a.Rotate(r.Soon(), next); err != nil {
		t.Fatal(err)
	}
	want("that was accepted on the live socket", next.Token)

	large := strings.Repeat(" ", firstFrame/2)
	same := func(text string) string { return text }
	h := byHand(t, r)
	for _, c := range []struct {
		what, method, id string
		change           func(text string) string
	}{
		{"that cloudly refused", registration, "node-b", same},
		{"of no node", registration, "node.b", same},
		{"in a method that nobody knows", "somethingNobodyKnows", "node-b", same},
		{"in a method of registered nodes", protection, "node-b", same},
		{"in a message that grew", registration, "node-b", func(text string) string { return strings.Replace(text, "{", "{"+large, 1) }},
		{"in a message with trailing data", registration, "node-b", func(text string) string { return text + "}" }},
		{"in a message that is too large", registration, "node-b", func(text string) string { return text + large + large }},
		{"in a message that is no envelope", registration, "node-b", func(text string) string { return strings.Replace(text, "correlation", "x", 1) }},
	} {
		token := "palletToken_" + r.Marker("a bearer "+c.what)
		body := registering(c.id, simulate.NodeCredential{Generation: 1, Token: token}, 1).AppendJSON(nil)
		h.Send(c.change(rig.RequestText(c.method, "id", string(body))))
		switch {
		case strings.HasSuffix(c.what, "envelope"): // which is not answered; what is sent behind it is
			h.Send(`{}`)
			h.Request("somethingNobodyKnows", `{}`)
			h.next()
		case strings.HasSuffix(c.what, "data"), strings.HasSuffix(c.what, "large"):
			h.WaitClose()
			h = byHand(t, r)
		default:
			if _, err := h.next().outcome(t); err == nil {
				t.Errorf("a bearer %s was accepted", c.what)
			}
		}
		want(c.what, token)
	}
	wantCarried(t, r, a, "node-a")
}
