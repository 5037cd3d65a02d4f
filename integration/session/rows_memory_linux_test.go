package session_test

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

const (
	// memoryStep is how much of a process is looked at in one piece.
	memoryStep = 4 << 20
	// hugeMapping is what no heap of a relay has, but the race detector's notes have.
	hugeMapping = 1 << 32
)

// steps returns how each byte differs from the fourth behind it. A text that a WebSocket has masked differs from itself
// by the same four bytes over and over (RFC 6455 §5.3), so its steps are its own.
func steps(p []byte) []byte {
	all := make([]byte, max(len(p)-4, 0))
	subtle.XORBytes(all, p, p[len(p)-len(all):])
	return all
}

// memoryOf returns the memory that a process can write to, in pieces that overlap by so many bytes.
func memoryOf(t *testing.T, pid, overlap int) (pieces [][]byte) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("the memory of another process cannot be read here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %4s", &from, &to, &mode); n != 3 || mode[:2] != "rw" || to-from >= hugeMapping {
			continue
		}
		for ; from < to; from += memoryStep {
			piece := make([]byte, min(to-from, memoryStep+uint64(overlap)))
			n, _ := memory.ReadAt(piece, int64(from)) // what is not there any more is nobody's
			pieces = append(pieces, piece[:n])
		}
	}
	return pieces
}

// copies counts how often a text lies in the memory of the relay, as it is and masked.
func copies(t *testing.T, r *rig.Rig, text string) (plain, masked int) {
	t.Helper()
	for _, piece := range memoryOf(t, r.PID(), len(text)-1) {
		n := bytes.Count(piece, []byte(text))
		plain += n
		masked += bytes.Count(steps(piece), steps([]byte(text))) - n // plain is masked by nothing
	}
	return plain, masked
}

// R30: nothing of a node's bearer is left in the whole process, whatever became of its registration: each buffer that it
// was read into, grew in or was forwarded from is zeroed before it is lent again. The one copy that may stay is that of
// the last record in crypto/tls, as the WebSocket masked it; that it is written over by the next message is held by the
// test of the whole appliance.
func TestR30_NothingOfABearerIsLeftInTheProcess(t *testing.T) {
	r := ready(t)
	want := func(what, token string) {
		t.Helper()
		r.Eventually("a bearer "+what+" to be forgotten", func() error {
			if plain, masked := copies(t, r, token); plain > 0 || masked > 1 {
				return fmt.Errorf("%d copies and %d masked ones lie in the memory of the relay", plain, masked)
			}
			return nil
		})
	}
	if plain, _ := copies(t, r, r.Cloudly.Authorization()); plain == 0 {
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
