package session_test

import (
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// malformed are messages that cost their socket (design §4, row O1).
var malformed = map[string]string{
	"no JSON":                          `registerPalletRuntimeSession`,
	"nothing":                          ``,
	"an array":                         `[]`,
	"trailing data":                    `{"method":"m"} {}`,
	"a trailing comma":                 `{"method":"m",}`,
	"a number that is none":            `{"method":"m","request":{"x":01}}`,
	"bad UTF-8":                        "{\"method\":\"m\",\"request\":{\"x\":\"\xff\"}}",
	"bad UTF-8 deep in a body":         "{\"method\":\"m\",\"request\":{\"x\":[{\"y\":\"\xed\xa0\x80\"}]}}",
	"a name twice":                     `{"method":"m","request":{},"method":"m"}`,
	"a name twice, once in escapes":    `{"method":"m","\u006dethod":"m"}`,
	"a name twice in a body":           `{"method":"m","request":{"nodeId":"node-a","nodeId":"node-b"}}`,
	"a name twice in a session":        `{"method":"m","request":{"session":{"nodeId":"node-a","nodeId":"node-b"}}}`,
	"a name twice in the correlation":  `{"method":"m","correlation":{"id":"i","id":"i"}}`,
	"depth 65":                         `{"method":"m","request":` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}`,
	"depth 20000":                      `{"method":"m","request":` + strings.Repeat(`[`, 20_000),
	"half a surrogate in a method":     `{"method":"\ud800"}`,
	"half a surrogate in a name":       `{"method":"m","\udc00":1}`,
	"half a surrogate on a body's top": `{"method":"m","request":{"x":"\ud800"}}`,
	"__proto__":                        `{"method":"m","__proto__":{}}`,
}

// R03: each malformed frame closes the socket it came on, of whatever role, and is counted; the others and the process
// go on.
func TestR03_AMalformedFrameCostsItsSocketAlone(t *testing.T) {
	r := ready(t)
	a, b, pid := r.Node("node-a"), byHand(t, r), r.PID()
	sent := 0
	for what, text := range malformed {
		stranger, node := byHand(t, r), registered(t, r, "node-b", 1)
		for role, h := range map[string]*hand{"a stranger": stranger, "a node": node} {
			h.Send(text)
			sent++
			if code, reason := h.WaitClose(); code != int(typedsocket.CloseInvalidData) {
				t.Fatalf("%s of %s: closed with %d %q", what, role, code, reason) // each more would be waited for too
			}
		}
	}
	binary := 0
	for _, h := range []*hand{byHand(t, r), registered(t, r, "node-b", 1)} {
		h.SendBinary([]byte(rig.RequestText(protection, "id", `{}`)))
		binary++
		if code, reason := h.WaitClose(); code != int(typedsocket.CloseUnsupported) {
			t.Errorf("a binary message: closed with %d %q", code, reason)
		}
	}
	r.Eventually("all of it to be counted", func() error {
		m := r.Metrics()
		bad, _ := m.Value("relay_listener_closed_sockets_total", "cause", "malformed")
		other, _ := m.Value("relay_listener_closed_sockets_total", "cause", "binary")
		if bad != float64(sent) || other != float64(binary) {
			return fmt.Errorf("%v malformed and %v binary, want %d and %d", bad, other, sent, binary)
		}
		return nil
	})
	wantCarried(t, r, a, "node-a")
	if _, err := b.ask("somethingNobodyKnows", `{}`); err == nil {
		t.Error("an unknown method was answered")
	}
	if r.PID() != pid || a.Dials() != 1 {
		t.Error("the process, or the other node's socket, did not stay")
	}

	// What is just right passes.
	deep := strings.Repeat(`[`, 61) + strings.Repeat(`]`, 61) // in the body's object, in the envelope
	for _, member := range []string{`"x":` + deep, `"x":{"y":"\ud800"},"z":{"k":1,"k":2},"__proto__":1`} {
		if _, err := a.Send(r.Soon(), protection, []byte(`{`+member+`}`)); err != nil {
			t.Errorf("%.40s: %v", member, err)
		}
	}
}

// A message that is JSON and no envelope is nobody's: it is passed over (typedsocket.md §1.5).
func TestWhatIsNoEnvelopeIsPassedOver(t *testing.T) {
	r := ready(t)
	h := registered(t, r, "node-a", 1)
	for _, text := range []string{
		`{}`, `{"method":"` + protection + `"}`, `{"hello":"` + withheld + `"}`,
		strings.Replace(rig.RequestText(protection, "id", `{"x":"`+withheld+`"}`), `"phase":"request"`, `"phase":"response"`, 1),
		strings.Replace(rig.RequestText(protection, "id", `{"x":"`+withheld+`"}`), `"phase":"request"`, `"phase":"other"`, 1),
	} {
		h.Send(text)
	}
	if _, err := h.ask(protection, string(under(h.session, `"x":1`))); err != nil {
		t.Error(err)
	}
	wantWithheld(t, r.Cloudly.Frames())
}

// An unbound socket may send 64 KiB, and not a byte more (contract §19).
func TestTheFirstFrameIsBounded(t *testing.T) {
	r := ready(t)
	for _, c := range []struct {
		size int
		code int
	}{{firstFrame, 0}, {firstFrame + 1, int(typedsocket.CloseTooBig)}} {
		h := byHand(t, r)
		h.Send(sized(t, registration, registrationOf(r, "node-a", 1), c.size))
		if c.code == 0 {
			if _, err := h.next().outcome(t); err != nil {
				t.Errorf("a frame of %d bytes: %v", c.size, err)
			}
			continue
		}
		if code, reason := h.WaitClose(); code != c.code {
			t.Errorf("a frame of %d bytes: closed with %d %q", c.size, code, reason)
		}
	}
	if got := len(r.Cloudly.Frames().Received(registration)); got != 1 {
		t.Errorf("cloudly received %d registrations", got)
	}
}

// sized is a request whose message has this many bytes: white space fills its body up.
func sized(t *testing.T, method, body string, size int) string {
	t.Helper()
	text := rig.RequestText(method, "uni_0123456789abcdef01234567", body)
	fill := size - len(text)
	if fill < 0 {
		t.Fatalf("the message has %d bytes already", len(text))
	}
	return strings.Replace(text, `"request":{`, `"request":{`+strings.Repeat(" ", fill), 1)
}

// One role a socket: a node's never becomes an ingress's, nor does it hear what is an ingress's.
func TestOneRoleASocket(t *testing.T) {
	r := ready(t)
	a := r.Node("node-a")
	for _, method := range []string{"registerClusterIngress", "getClusterIngressRouteTable", "pushClusterIngressRouteTableChanged"} {
		for _, body := range [][]byte{
			[]byte(`{"nodeId":"node-a","x":"` + withheld + `"}`), under(bound(t, a), `"nodeId":"node-a","x":"`+withheld+`"`),
		} {
			if got, err := a.SendBody(r.Soon(), method, body); err == nil {
				t.Errorf("%s on a node's socket was answered %s", method, got)
			}
		}
	}
	wantCarried(t, r, a, "node-a")
	wantWithheld(t, r.Cloudly.Frames())
}

// A retry that Cloudly asks a node for is the node's to act on (design §4, row O1): it comes back as it is, and the
// relay sends nothing again.
func TestARetryIsTheNodesToActOn(t *testing.T) {
	r := ready(t)
	const retry = `{ "waitForMs":1,"reason":"l\u0061ter" }`
	h := registered(t, r, "node-a", 1)
	for _, method := range []string{registration, protection} {
		before := len(r.Cloudly.Frames().Received(method))
		r.Cloudly.Script(method, anyway(`null,"retry":`+retry))
		body := string(under(h.session, `"x":1`))
		if method == registration {
			body = registrationOf(r, "node-a", 1)
		}
		h.Request(method, body)
		if f := h.next(); string(f.members["retry"]) != retry || string(f.members["response"]) != "null" || f.members["error"] != nil {
			t.Errorf("%s was answered %s", method, f.text)
		}
		if _, err := h.ask("getRuntimeSecretRecipientState", string(under(h.session, `"x":1`))); err != nil {
			t.Errorf("after it: %v", err) // on the same flow, so whatever was sent again has arrived
		}
		if got := len(r.Cloudly.Frames().Received(method)) - before; got != 1 {
			t.Errorf("cloudly received %s %d times", method, got)
		}
	}
	// The other way: a node asks Cloudly for one.
	node := r.Node("node-b")
	node.Script(assignment, anyway(`null,"retry":`+retry), simulate.Step{})
	if _, err := r.Cloudly.CallNode(r.Soon(), "node-b", assignment, []byte(`{"x":1}`)); err != nil {
		t.Errorf("cloudly acted on the retry, and: %v", err)
	}
	if got := node.Frames().Received(assignment); len(got) != 2 || got[0].Instance == got[1].Instance {
		t.Errorf("the node received %d pushes", len(got))
	}
}
