package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

const (
	// memoryStep is how much of a process is looked at in one piece.
	memoryStep = 4 << 20
	// hugeMapping is what no heap of a relay has, but the race detector's notes have.
	hugeMapping = 1 << 32
	// secretPiece is how many bytes of a secret are searched for: what a marker repeats.
	secretPiece = 16
)

// steps returns how each byte differs from the fourth behind it. A text that a WebSocket has masked differs from itself
// by the same four bytes over and over (RFC 6455 §5.3), so its steps are its own.
func steps(p []byte) []byte {
	all := make([]byte, max(len(p)-4, 0))
	for i := range all {
		all[i] = p[i] ^ p[i+4]
	}
	return all
}

// inMemory counts how often each text lies in the memory that the process of the relay can write to, as it is or masked.
// Texts are found by their last bytes.
func inMemory(t *testing.T, r *rig.Rig, texts map[string]string) map[string]int {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", r.PID()))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", r.PID()))
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("the memory of another process cannot be read here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	found := map[string]int{}
	piece := make([]byte, memoryStep+secretPiece)
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %4s", &from, &to, &mode); n != 3 || mode[:2] != "rw" || to-from >= hugeMapping {
			continue
		}
		for ; from < to; from += memoryStep {
			// What is not there any more, or cannot be read, is not the relay's.
			n, _ := memory.ReadAt(piece[:min(to-from, memoryStep+secretPiece)], int64(from))
			search(piece[:n], texts, found)
		}
	}
	return found
}

// search counts the texts in a piece of memory.
func search(piece []byte, texts map[string]string, found map[string]int) {
	masked := steps(piece)
	for name, text := range texts {
		tail := []byte(text[len(text)-secretPiece:])
		found[name] += bytes.Count(masked, steps(tail)) // plain ones too: a mask of nothing
	}
}

// R30, R43: nothing of a node's bearer, nor of the key it was answered with, is left in the whole process, whatever
// became of its request. What crypto/tls and the WebSocket library keep of a message until the next one comes is written
// over by a longer one first.
func TestR30_NothingOfASecretIsLeftInTheProcess(t *testing.T) {
	const getKey = "getRuntimeManagedVpnCredential"
	r := ready(t)
	key := r.Marker("a node's VPN key")
	r.Cloudly.ScriptAlways(getKey, anyway(`{"clientKeyPair":{"privateKey":"`+key+`"}}`))
	secrets := map[string]string{"the VPN key": key}
	longer := `"x":"` + strings.Repeat("x", 12_000) + `"`

	a := r.Node("node-a")
	secrets["an accepted bearer"] = r.Enroll("node-a").Token
	next := r.RotateNode("node-a")
	secrets["a rotated bearer"] = next.Token
	if err := a.Rotate(r.Soon(), next); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Send(r.Soon(), getKey, []byte(`{"projection":{}}`)); err != nil {
		t.Fatal(err)
	}
	var others []*hand
	for what, id := range map[string]string{"a refused bearer": "node-b", "a bearer without a node": "node.c"} {
		token := "palletToken_" + r.Marker(what)
		secrets[what] = token
		h := byHand(t, r)
		if _, err := h.ask(registration, string(registering(id, simulate.NodeCredential{Generation: 1, Token: token}, 1).AppendJSON(nil))); err == nil {
			t.Errorf("%s was accepted", what)
		}
		others = append(others, h)
	}
	for _, h := range others {
		_, err := h.ask(registration, `{`+longer+`}`)
		wantRefused(t, "no node", err, contract.RelayNodeNotCarried)
	}
	for range 2 {
		if _, err := a.Send(r.Soon(), protection, []byte(`{`+longer+`}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Cloudly.CallNode(r.Soon(), "node-a", assignment, []byte(`{`+longer+`}`)); err != nil {
			t.Fatal(err)
		}
	}

	secrets["the relay's own bearer"] = r.Cloudly.Authorization() // which it keeps, so the search finds what is there
	found := inMemory(t, r, secrets)
	t.Log(found)
	if found["the relay's own bearer"] == 0 {
		t.Error("the relay's own bearer was not found in its memory: the search is blind")
	}
	delete(found, "the relay's own bearer")
	for what, n := range found {
		if n > 0 {
			t.Errorf("%s lies in the memory of the relay, %d times", what, n)
		}
	}
}
