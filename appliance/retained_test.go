package appliance

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"unsafe"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// retained looks for a text in everything that can be reached from a value: through pointers, interfaces, maps and
// fields of every package, in texts, and in memory up to the capacity of its slice, so also in what was read before.
// What a function alone holds, a channel or a goroutine's stack is beyond it; nothing of the relay keeps bodies there
// once they are answered, since all buffers are back (bubble checks it).
type retained struct {
	text  []byte
	steps []byte // of the text, see steps
	seen  map[place]bool
	found []string
	bytes int // looked through
}

// place is a value that was looked at: of one address there may be several, a struct and its first field.
type place struct {
	of reflect.Type
	at unsafe.Pointer
	n  int // of a slice
}

// retainedIn returns the paths of all places below a pointer at which a text is held, and how many bytes were looked
// through.
func retainedIn(v any, text string) (paths []string, looked int) {
	r := &retained{text: []byte(text), steps: steps([]byte(text)), seen: map[place]bool{}}
	r.look(reflect.ValueOf(v), "")
	return r.found, r.bytes
}

func (r *retained) memory(p []byte, path string) {
	r.bytes += len(p)
	switch {
	case bytes.Contains(p, r.text):
		r.found = append(r.found, path)
	case bytes.Contains(steps(p), r.steps):
		r.found = append(r.found, path+" (masked)")
	}
}

// steps returns how each byte differs from the fourth behind it. A text that a WebSocket has masked differs from itself
// by four bytes over and over (RFC 6455 §5.3), so its steps are its own.
func steps(p []byte) []byte {
	all := make([]byte, max(len(p)-4, 0))
	subtle.XORBytes(all, p, p[len(p)-len(all):])
	return all
}

// fresh reports whether a place is looked at for the first time.
func (r *retained) fresh(v reflect.Value, at unsafe.Pointer, n int) bool {
	p := place{v.Type(), at, n}
	if at == nil || r.seen[p] {
		return false
	}
	r.seen[p] = true
	return true
}

func (r *retained) look(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		r.memory([]byte(v.String()), path)
	case reflect.Pointer:
		if r.fresh(v, v.UnsafePointer(), 0) {
			r.look(v.Elem(), path)
		}
	case reflect.Interface:
		if !v.IsNil() {
			r.look(v.Elem(), path)
		}
	case reflect.Map:
		if r.fresh(v, v.UnsafePointer(), 0) {
			for entry := v.MapRange(); entry.Next(); {
				r.look(entry.Key(), path+"[key]")
				r.look(entry.Value(), path+"[...]")
			}
		}
	case reflect.Slice:
		if r.fresh(v, v.UnsafePointer(), v.Cap()) {
			r.elements(v, path)
		}
	case reflect.Array:
		for i := range v.Len() {
			if i > 0 && v.Type().Elem().Kind() == reflect.Uint8 {
				break // arrays of bytes hold no text that is as long as one to look for, but keys and sums
			}
			r.look(v.Index(i), path+"[...]")
		}
	case reflect.Struct:
		r.fields(v, path)
	}
}

// elements looks at a slice up to its capacity.
func (r *retained) elements(v reflect.Value, path string) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		r.memory(unsafe.Slice((*byte)(v.UnsafePointer()), v.Cap()), path)
		return
	}
	size := v.Type().Elem().Size()
	for i := range v.Cap() {
		at := unsafe.Add(v.UnsafePointer(), uintptr(i)*size)
		r.look(reflect.NewAt(v.Type().Elem(), at).Elem(), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (r *retained) fields(v reflect.Value, path string) {
	of := v.Type()
	if of.PkgPath() == "sync/atomic" && strings.HasPrefix(of.Name(), "Pointer[") {
		// It holds its pointer without a type, and a field of the type beside it.
		pointer := v.FieldByName("v").UnsafePointer()
		if pointer != nil {
			r.look(reflect.NewAt(of.Field(0).Type.Elem().Elem(), pointer), path)
		}
		return
	}
	for i := range v.NumField() {
		r.look(v.Field(i), path+"."+of.Field(i).Name)
	}
}

// TestRetainedFinds what it is to find, wherever it lies.
func TestRetainedFinds(t *testing.T) {
	type inner struct {
		text string
		mem  []byte
		next *inner
	}
	type outer struct {
		m    map[string]*inner
		any  any
		at   atomic.Pointer[inner]
		list []inner
		pair [2]inner
	}
	for want, plant := range map[string]func(*outer){
		"":                 func(o *outer) { o.any = "not it" },
		".m[...].text":     func(o *outer) { o.m = map[string]*inner{"x": {text: "a secret text"}} },
		".m[key]":          func(o *outer) { o.m = map[string]*inner{"secret": nil} },
		".any.mem":         func(o *outer) { o.any = &inner{mem: []byte("secret")} },
		".any":             func(o *outer) { o.any = []byte("a secret")[:0] },
		".at.next.text":    func(o *outer) { o.at.Store(&inner{next: &inner{text: "secret"}}) },
		".list[1].text":    func(o *outer) { o.list = []inner{{}, {text: "secret"}}[:1] },
		".pair[...].mem":   func(o *outer) { o.pair[1].mem = []byte("secret") },
		".any.next.text":   func(o *outer) { i := &inner{text: "secret"}; i.next = i; o.any = &inner{next: i} },
		".any.list[0].mem": func(o *outer) { o.any = outer{list: []inner{{mem: []byte("12345secret")[:2]}}} },
	} {
		var o outer
		plant(&o)
		if paths, _ := retainedIn(&o, "secret"); strings.Join(paths, " ") != want {
			t.Errorf("found at %q, want %q", paths, want)
		}
	}
}

// bearer is a node's, that nothing else looks like.
func bearer(of string) string {
	sum := sha256.Sum256([]byte(of))
	return "palletToken_" + hex.EncodeToString(sum[:])
}

// R30: nothing that can be reached from a whole relay holds the bearer of a node, whatever became of its registration
// (contract §7.1). What crypto/tls keeps of a record until the next one comes, which is there to be found, is written
// over by a longer message first.
func TestR30_ABearerIsNotRetained(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, change{})
		r.registered(0)
		nodes := map[string]*wire{}
		for _, id := range []string{"accepted", "refused", "unanswered", "misnamed"} {
			w := r.dialled(id)
			w.credential.Token = bearer(id)
			nodes[id] = w
		}
		if err := r.cloudly.SetNodeCredential("accepted", nodes["accepted"].credential); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := nodes["accepted"].register(); err != nil {
				t.Fatal(err)
			}
		}
		if err := nodes["refused"].register(); err == nil {
			t.Error("a wrong bearer was accepted")
		}
		r.cloudly.Script(contract.MethodRegisterPalletRuntimeSession, simulate.Ignore())
		go nodes["unanswered"].register() // until its socket ends
		nodes["misnamed"].id = "not.a.node"
		if err := nodes["misnamed"].register(); nameOf(err) != contract.RelayNodeNotCarried {
			t.Errorf("a node that is none: %v", err)
		}
		synctest.Wait()

		for id, w := range nodes {
			wantHeld(t, r, "the bearer of the "+id+" node", bearer(id), ".rawInput.buf (masked)")
			w.call(protection, longer)
			wantHeld(t, r, "the bearer of the "+id+" node", bearer(id))
		}

		// Were it held, it would be found.
		r.rec.held = append(r.rec.held, "a method", bearer("accepted"))[:1]
		wantHeld(t, r, "a planted bearer", bearer("accepted"), ".held[1]")
	})
}

// R43: nothing that can be reached from a whole relay holds the private key in the answer to a node. The buffer with
// which the WebSocket library reads Cloudly's messages keeps the last one as crypto/tls does.
func TestR43_AVPNKeyIsNotRetained(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const method = "getRuntimeManagedVpnCredential"
		r := newRig(t, change{})
		r.registered(0)
		w := r.wired("node-a")
		key := bearer("a VPN key")
		answer := `{"clientKeyPair":{"privateKey":"` + key + `"}}`
		r.cloudly.Handle(method, func(string, []byte) ([]byte, error) { return []byte(answer), nil })
		if got, err := w.call(method, w.under()); err != nil || string(got) != answer {
			t.Errorf("the node was answered %s, %v", got, err)
		}
		wantHeld(t, r, "the key", key, ".rawInput.buf", ".ws.br.buf")
		if err := r.sentTo(w, 1); err != nil {
			t.Error(err)
		}
		r.cloudly.Call(r.soon(), assignment, []byte(longer))
		wantHeld(t, r, "the key", key)
	})
}

// longer is a body that is longer than what came before it, and refused.
var longer = `{"x":"` + strings.Repeat("x", 8000) + `"}`

// wantHeld checks where in the relay a text is held: at one place for each of these ends of paths, and nowhere else. No
// time may pass in the bubble afterwards: what a timer wakes is not ordered behind these reads, as the race detector
// sees it, and everything else is.
func wantHeld(t *testing.T, r *rig, what, text string, ends ...string) {
	t.Helper()
	synctest.Wait()
	paths, looked := retainedIn(r.relay, text)
	held := len(paths) == len(ends)
	for i := 0; held && i < len(ends); i++ {
		held = slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, ends[i]) })
	}
	if !held || looked < 32<<10 {
		t.Errorf("%s is held at %q, want %q; %d bytes were looked through", what, paths, ends, looked)
	}
}
