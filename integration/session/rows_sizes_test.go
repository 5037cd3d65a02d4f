package session_test

import (
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// Bounds of contract §16 and §19, written out here once more so that a changed one shows.
const (
	maximalEntries   = 1024      // of a log report
	maximalReport    = 1_048_576 // canonical bytes of one
	projectionLimit  = 896 << 10 // canonical bytes of a network projection
	firstFrame       = 64 << 10  // of a socket that has not registered
	nodeFrame        = 4 << 20   // of a node
	requestsInFlight = 64        // of a node, in each direction
	bytesInFlight    = 8 << 20   // of a node
)

// maximalLogs is a batch with the most entries whose report, under a session, has exactly so many canonical bytes.
func maximalLogs(t *testing.T, session contract.Raw, canonical int) simulate.LogBatch {
	t.Helper()
	batch := simulate.LogBatch{AssignmentID: "assignment-1", AttemptID: "attempt-1", CaptureID: "capture-1", Sequence: 1}
	entry := func(text string) contract.Raw {
		return contract.Raw(`{"stream":"stdout","text":"` + text + `","timestamp":"1700000000000000000"}`)
	}
	for range maximalEntries {
		batch.Entries = append(batch.Entries, entry(""))
	}
	report := func() []byte {
		return []byte(`{"session":` + string(session) + `,"batch":` + string(batch.AppendJSON(nil)) + `}`)
	}
	length, err := contract.CanonicalLength(report())
	if err != nil {
		t.Fatal(err)
	}
	// A letter of two bytes, which an escape writes in six.
	fill := canonical - length
	each := fill / maximalEntries &^ 1
	for i := range batch.Entries {
		text := strings.Repeat("\u00e9", each/2)
		if i == 0 {
			text += strings.Repeat("x", fill-each*maximalEntries)
		}
		batch.Entries[i] = entry(text)
	}
	if length, err = contract.CanonicalLength(report()); err != nil || length != canonical {
		t.Fatalf("the report has %d canonical bytes, want %d (%v)", length, canonical, err)
	}
	return batch
}

// R93: the largest log report passes, also when it is written with escapes in three times its size.
func TestR93_TheLargestLogReportPasses(t *testing.T) {
	r := ready(t)
	escapes := func(c *simulate.PalletConfig) {
		c.Spell = func(body []byte) []byte { return []byte(strings.ReplaceAll(string(body), "\u00e9", "\\u00e9")) }
	}
	for id, change := range map[string]func(*simulate.PalletConfig){"node-a": func(*simulate.PalletConfig) {}, "node-b": escapes} {
		node := r.Node(id, change)
		batch := maximalLogs(t, bound(t, node), maximalReport)
		if status, err := node.ReportLogs(r.Soon(), batch); err != nil || status != "accepted" {
			t.Errorf("%s: %s %v", id, status, err)
		}
		sent := node.Frames().Sent("reportRuntimeAssignmentLogs")
		received := r.Cloudly.Frames().Received("reportRuntimeAssignmentLogs")
		if len(sent) != 1 || len(received) == 0 || string(sent[0].Body) != string(received[len(received)-1].Body) {
			t.Errorf("%s: the report changed, or was sent %d times", id, len(sent))
		}
		if got := len(sent[0].Text); got < 1<<20 || id == "node-b" && got < 3_000_000 {
			t.Errorf("%s: the message had only %d bytes", id, got)
		}
	}
}

// R93: a message of 4 MiB passes; one byte more closes that socket only.
func TestR93_ALargerFrameClosesItsSocketAlone(t *testing.T) {
	r := ready(t)
	other := r.Node("node-b")
	h := registered(t, r, "node-a", 1)
	h.Send(sized(t, protection, string(under(h.session, `"x":1`)), nodeFrame))
	if _, err := h.next().outcome(t); err != nil {
		t.Errorf("a frame of %d bytes: %v", nodeFrame, err)
	}
	h.Send(sized(t, protection, string(under(h.session, `"x":1`)), nodeFrame+1))
	if code, reason := h.WaitClose(); code != int(typedsocket.CloseTooBig) {
		t.Errorf("a frame of %d bytes: closed with %d %q", nodeFrame+1, code, reason)
	}
	if got := len(r.Cloudly.Frames().Received(protection)); got != 1 {
		t.Errorf("cloudly received %d reports", got)
	}
	wantCarried(t, r, other, "node-b")
	if other.Dials() != 1 || r.Upstream.Accepted() != 1 {
		t.Error("another socket did not stay")
	}
	registered(t, r, "node-a", 1) // the node may come back
}

// R93: the largest signed projection passes to a node under a configured name, and so does an answer that repeats it.
func TestR93_TheLargestProjectionPasses(t *testing.T) {
	const method = "pushSignedRuntimeNetworkProjection"
	r := ready(t, further)
	node := r.Node("node-a", func(c *simulate.PalletConfig) { c.PushMethods = []string{method} })
	projection := `{"id":"p","text":"` + strings.Repeat("\u00e9", projectionLimit/2-10) + `"}`
	if got, err := contract.CanonicalLength([]byte(projection)); err != nil || got != projectionLimit {
		t.Fatalf("the projection has %d bytes, %v", got, err)
	}
	body := string(odd(t, under(bound(t, node), `"signed":{ "signature":"`+strings.Repeat("s", 88)+`","projection" : `+projection+`,"authority":{"id":"a"}}`)))
	node.Script(method, simulate.Respond([]byte(body)))
	got, err := r.Cloudly.Call(r.Soon(), method, []byte(body))
	if err != nil || string(got) != body {
		t.Errorf("cloudly was answered with %d bytes, %v", len(got), err)
	}
	if pushed := node.Frames().Received(method); len(pushed) != 1 || string(pushed[0].Body) != body {
		t.Errorf("the push changed, or came %d times", len(pushed))
	}
}

// overloaded takes so many answers, each of which is to be a refusal for load.
func (h *hand) overloaded(n int) {
	h.t.Helper()
	for range n {
		_, err := h.next().outcome(h.t)
		wantRefused(h.t, "a request beyond the bound", err, contract.RelayOverloaded)
	}
}

// §16: 64 requests of a node are in flight to Cloudly, and 64 of Cloudly to a node. The next one is refused at once, the
// other direction and other nodes are not concerned, and one more is welcome when one was answered.
func TestSixtyFourRequestsOfANodeAreInFlight(t *testing.T) {
	r := ready(t)
	other := r.Node("node-b")
	h := registered(t, r, "node-a", 1)
	body := string(under(h.session, `"x":1`))

	r.Cloudly.StopReading()
	for range requestsInFlight + 3 {
		h.Request(protection, body)
	}
	h.overloaded(3)
	r.Cloudly.ResumeReading()
	for range requestsInFlight {
		if _, err := h.next().outcome(t); err != nil {
			t.Errorf("a request within the bound: %v", err)
		}
	}
	if _, err := h.ask(protection, body); err != nil {
		t.Errorf("after them: %v", err)
	}
	if got := len(r.Cloudly.Frames().Received(protection)); got != requestsInFlight+1 {
		t.Errorf("cloudly received %d reports", got)
	}

	outcomes, ctx := make(chan error, requestsInFlight+1), r.Soon()
	push := func() {
		_, err := r.Cloudly.Call(ctx, assignment, []byte(body))
		outcomes <- err
	}
	var pushes []frame
	for range requestsInFlight {
		go push()
		pushes = append(pushes, h.next())
	}
	push()
	wantRefused(t, "a push beyond the bound", <-outcomes, contract.RelayOverloaded)
	h.Request(protection, body) // up is not concerned
	if _, err := h.next().outcome(t); err != nil {
		t.Errorf("a report beside 64 pushes: %v", err)
	}
	wantCarried(t, r, other, "node-b")
	h.reply(pushes[0], `{}`)
	if err := <-outcomes; err != nil {
		t.Errorf("a push within the bound: %v", err)
	}
	go push()
	for _, p := range append(pushes[1:], h.next()) {
		h.reply(p, `{}`)
		if err := <-outcomes; err != nil {
			t.Errorf("a push within the bound: %v", err)
		}
	}
}

// §19: the requests of a node that are in flight hold 8 MiB at most; another node is not concerned.
func TestEightMebibytesOfANodeAreInFlight(t *testing.T) {
	r := ready(t)
	h, other := registered(t, r, "node-a", 1), registered(t, r, "node-b", 1)
	const size, count = 1 << 20, 12
	r.Cloudly.StopReading()
	for range count {
		h.Send(sized(t, protection, string(under(h.session, `"x":1`)), size))
	}
	other.Request(protection, string(under(other.session, `"x":1`)))
	// Memory counts, of which a message has some more than its bytes.
	const least = count - bytesInFlight/size
	h.overloaded(least)
	r.Cloudly.ResumeReading()
	accepted, refused := 0, least
	for range count - least {
		if _, err := h.next().outcome(t); err != nil {
			wantRefused(t, "a request beyond the bound", err, contract.RelayOverloaded)
			refused++
		} else {
			accepted++
		}
	}
	if _, err := other.next().outcome(t); err != nil {
		t.Errorf("another node: %v", err)
	}
	if accepted < bytesInFlight/size/2 {
		t.Errorf("%d requests of %d bytes passed and %d were refused", accepted, size, refused)
	}
	if got := len(r.Cloudly.Frames().Received(protection)); got != accepted+1 {
		t.Errorf("cloudly received %d reports, %d were accepted", got, accepted+1)
	}
	h.Send(sized(t, protection, string(under(h.session, `"x":1`)), size))
	if _, err := h.next().outcome(t); err != nil {
		t.Errorf("after them: %v", err)
	}
	if held, _ := r.Metrics().Value("relay_forward_inflight_bytes"); held != 0 {
		t.Errorf("%v bytes are still in flight", held)
	}
}
