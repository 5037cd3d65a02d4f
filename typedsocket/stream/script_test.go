package stream

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"serve.zone/relay/typedsocket/buffer"
)

// isAny reports whether err is one of the targets.
func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// script is one Mux whose peer is the test itself: it says frames and sees
// what is answered. The Mux is the WebSocket client.
type script struct {
	t    testing.TB
	m    *Mux
	said []string // the frames the Mux sent, see note
	hold bool     // frames of bulk do not leave
	held []func()
}

func newScript(t testing.TB, cfg Config) *script {
	sc := &script{t: t}
	cfg.Carrier, cfg.Client, cfg.Peer = sc, true, "peer"
	sc.m = NewMux(cfg)
	n := 0
	sc.m.newID = func() string {
		n++
		return fmt.Sprintf("id%d", n)
	}
	return sc
}

// note writes a frame as one line: kind number value payload, a long payload
// as its length.
func note(f frame) string {
	payload := string(f.payload)
	if len(payload) > 24 {
		payload = fmt.Sprintf("(%d)", len(payload))
	}
	return strings.TrimSpace(fmt.Sprintf("%s %d %d %s", f.kind, f.number, f.value, payload))
}

func (sc *script) Control(b *buffer.Buffer) error { return sc.Bulk("", b, func() {}) }

func (sc *script) Bulk(_ string, b *buffer.Buffer, sent func()) error {
	f, err := readFrame(b.Bytes())
	if err != nil {
		sc.t.Errorf("sent what is no frame: %v", err)
	}
	sc.said = append(sc.said, note(f))
	b.Release()
	if sc.hold {
		sc.held = append(sc.held, sent)
		return nil
	}
	sent()
	return nil
}

// heard returns what the Mux has sent since the last call.
func (sc *script) heard() []string {
	said := sc.said
	sc.said = nil
	return said
}

// frame lets the peer say a frame.
func (sc *script) frame(kind Kind, number uint32, value uint64, payload string) error {
	h := header(kind, number, value)
	return sc.message(append(h[:], payload...))
}

func (sc *script) message(p []byte) error { return sc.m.Receive(buffer.Of(p)) }

func (sc *script) offer(d Direction) *Stream {
	s, err := sc.m.Offer(Options{Direction: d})
	if err != nil {
		sc.t.Fatal(err)
	}
	return s
}

// accepted returns a stream that the Mux offered and the peer opened with a
// number, and forgets the frames until then.
func (sc *script) accepted(d Direction, number uint32, value uint64) *Stream {
	s := sc.offer(d)
	if err := sc.frame(kindOpenAck, number, value, s.ID()); err != nil {
		sc.t.Fatal(err)
	}
	sc.heard()
	return s
}

// opened returns a stream that the peer offered and the Mux opened.
func (sc *script) opened(d Direction) *Stream {
	s, err := sc.m.Open(fmt.Appendf(nil, `{"_isVirtualStream":true,"protocol":"virtual-stream-v1",`+
		`"streamId":"peer%d","creatorDirection":%q,"transport":{"relayStream":1}}`, sc.m.next, d.Opposite()))
	if err != nil {
		sc.t.Fatal(err)
	}
	sc.heard()
	return s
}
