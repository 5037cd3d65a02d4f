package ingress_test

import (
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/typedsocket"
)

// Bounds of contract §19 and design §4, written out here once more so that a changed one
// shows.
const (
	largestTable = 15 << 20 // encoded
	cloudlyFrame = 16 << 20 // of Cloudly
	ingressFrame = 1 << 20  // of a registered ingress
	firstFrame   = 64 << 10 // of a socket that has not registered
	ingressAsks  = 64 << 10 // a request of an ingress
)

// sizedTable is a table of exactly so many bytes.
func sizedTable(revision int64, size int) string {
	front := fmt.Sprintf(`{"revision":%d,"issuedAt":1,"routes":[{"hostname":"a.example","destinations":[],"certificate":{"chain":"`, revision)
	const back = `"}}],"portRoutes":[]}`
	return front + strings.Repeat("c", size-len(front)-len(back)) + back
}

// R93, §19: the largest table reaches an ingress byte for byte, pushed as well as pulled.
// One byte more is refused, and so is a frame that is larger than any, at the cost of that
// request alone.
func TestR93_TheLargestTable(t *testing.T) {
	c := start(t)
	h := c.ingress("node-a")
	held := sizedTable(5, largestTable)
	c.pushed("a table of 15 MiB", held, 5)
	h.wantHint(5)
	h.wantTable("a table of 15 MiB", held)
	if got := c.status().Table; got == nil || got.Bytes != largestTable {
		t.Errorf("the status shows %+v", got)
	}
	_, err := c.push(`{"table":` + sizedTable(6, largestTable+1) + `}`)
	c.wantRefused("a table of one byte more", err, tableInvalid, "is larger than 15 MiB encoded")
	if _, err := c.push(`{` + strings.Repeat(" ", cloudlyFrame) + `"table":` + plainTable(6) + `}`); err == nil {
		t.Error("a frame of more than 16 MiB was taken")
	}
	c.pulls(`{"table":`+sizedTable(6, largestTable+1)+`}`, "invalid")
	if got := c.revision(); got != 5 || c.Upstream.Accepted() != 1 {
		t.Errorf("held is %d, over %d connections", got, c.Upstream.Accepted())
	}
	held = sizedTable(7, largestTable)
	c.pulls(`{"table":`+held+`}`, "applied")
	h.wantHint(7)
	h.wantTable("a pulled table of 15 MiB", held)
}

// sized is a request of exactly so many bytes, whose body has a member of filler.
func sized(t *testing.T, method, body string, size int) string {
	t.Helper()
	text := rig.RequestText(method, "uni_000000000000000000000001", strings.Replace(body, `{`, `{"capabilities":"",`, 1))
	if len(text) > size {
		t.Fatalf("the request has %d bytes", len(text))
	}
	return strings.Replace(text, `"capabilities":"`, `"capabilities":"`+strings.Repeat("x", size-len(text)), 1)
}

// R93, §19: the bounds of what comes from an ingress, each met and passed by one byte. What
// is larger costs that socket alone.
func TestR93_FramesOfIngresses(t *testing.T) {
	c := start(t)
	h := c.byHand()
	h.Send(sized(t, registering, c.registration("node-a"), firstFrame))
	if m := h.next(); m.Refused {
		t.Errorf("a registration in a frame of %d bytes: %s", firstFrame, m.ErrorText)
	}
	over := c.byHand()
	over.Send(sized(t, registering, c.registration("node-b"), firstFrame+1))
	if code, reason := over.WaitClose(); code != int(typedsocket.CloseTooBig) {
		t.Errorf("a registration in a frame of %d bytes: closed with %d %q", firstFrame+1, code, reason)
	}
	wantOne := func(when string) {
		t.Helper()
		c.wantSpeakers("node-a")
		if got := len(c.Cloudly.Frames().Received(registering)); got != 1 {
			t.Errorf("%s: cloudly received %d registrations, want 1", when, got)
		}
	}
	wantOne("after the first frames")

	// A request of a registered ingress is as small as its first one.
	body := strings.Replace(c.registration("node-a"), `{`, `{"capabilities":"`+strings.Repeat("x", ingressAsks)+`",`, 1)
	if _, err := h.ask(registering, body); err == nil {
		t.Errorf("a registration of %d bytes was carried", len(body))
	}
	if _, err := h.ask(asking, `{"knownRevision":null`+strings.Repeat(" ", ingressAsks)+`}`); err == nil {
		t.Error("a question of more than 64 KiB was answered")
	}
	wantOne("after the large requests")

	// The largest page passes, and is nobody's copy.
	ctx := c.Soon()
	ask := func() (<-chan contract.Raw, <-chan error) {
		answer, failed := make(chan contract.Raw, 1), make(chan error, 1)
		go func() {
			got, err := c.Cloudly.Call(ctx, counting, []byte(question(day1, day2, "", 2)))
			answer <- got
			failed <- err
		}()
		return answer, failed
	}
	page := func(request string, size int) (message, statistics string) {
		front := `{"method":"` + counting + `","request":null,"response":{"statistics":[{"dayUtc":"` + day1 +
			`","hostname":"a.example","nodeId":"node-a","requests":1,"bytesIn":2,"bytesOut":3,"connections":4,"failures":{"x":"`
		back := `"}}]}` + request
		message = front + strings.Repeat("x", size-len(front)-len(back)) + back
		_, rest, _ := strings.Cut(message, `"response":`)
		return message, rest[:len(rest)-len(request)]
	}
	about := func() string {
		m := h.request(counting)
		return `,"requestInstanceId":"` + m.Instance + `","correlation":{"id":"` + m.ID + `","phase":"response"}}`
	}
	answer, failed := ask()
	message, want := page(about(), ingressFrame)
	h.Send(message)
	if got, err := <-answer, <-failed; err != nil || string(got) != want {
		t.Errorf("a page in a frame of %d bytes: answered %d bytes, %v, want %d", len(message), len(got), err, len(want))
	}
	answer, failed = ask()
	message, _ = page(about(), ingressFrame+1)
	h.Send(message)
	if code, reason := h.WaitClose(); code != int(typedsocket.CloseTooBig) {
		t.Errorf("a page in a frame of %d bytes: closed with %d %q", len(message), code, reason)
	}
	<-answer
	c.wantRefused("the counters of an ingress whose socket was closed", <-failed, notRegistered, "node node-a has left")
	other := c.ingress("node-b")
	other.wantTable("another ingress", "null")
	if n := c.Upstream.Accepted(); n != 1 {
		t.Errorf("%d connections to cloudly", n)
	}
}
