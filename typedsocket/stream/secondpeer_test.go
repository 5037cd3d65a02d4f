package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"serve.zone/relay/typedsocket/buffer"
)

// secondPeer is a second implementation of docs/streams.md, as plain as it can
// be: one stream, blocking, nothing shared with the package but the page. It
// is the WebSocket server.
type secondPeer struct {
	in     chan []byte // messages that arrived
	out    func([]byte)
	number uint32
	permit uint64
}

var errSecond = errors.New("second implementation")

func (p *secondPeer) say(kind byte, value uint64, payload []byte) {
	m := []byte{1, kind, 0, 0}
	m = binary.BigEndian.AppendUint32(m, p.number)
	m = binary.BigEndian.AppendUint64(m, value)
	p.out(append(m, payload...))
}

// hear returns the next message of the stream that is not a credit, which it
// takes note of.
func (p *secondPeer) hear() (kind byte, value uint64, payload []byte, err error) {
	for m := range p.in {
		if len(m) < 16 || m[0] != 1 || m[2] != 0 || m[3] != 0 || binary.BigEndian.Uint32(m[4:8]) != p.number {
			return 0, 0, nil, fmt.Errorf("%w: odd message %x", errSecond, m)
		}
		value = binary.BigEndian.Uint64(m[8:16])
		if m[1] != 3 {
			return m[1], value, m[16:], nil
		}
		if value < p.permit || len(m) != 16 {
			return 0, 0, nil, fmt.Errorf("%w: credit %x", errSecond, m)
		}
		p.permit = value
	}
	return 0, 0, nil, fmt.Errorf("%w: socket gone", errSecond)
}

// awaitOpen is section 4 for a creator.
func (p *secondPeer) awaitOpen(id string) (value uint64, err error) {
	m := <-p.in
	if len(m) < 16 || m[1] != 1 || string(m[16:]) != id {
		return 0, fmt.Errorf("%w: no open-ack: %x", errSecond, m)
	}
	p.number = binary.BigEndian.Uint32(m[4:8])
	if p.number%2 != 1 {
		return 0, fmt.Errorf("%w: an even number from the client", errSecond)
	}
	return binary.BigEndian.Uint64(m[8:16]), nil
}

// send is sections 5 and 6 for a sender.
func (p *secondPeer) send(data []byte) error {
	sent := uint64(0)
	for sent < uint64(len(data)) {
		for p.permit == sent {
			m := <-p.in
			if len(m) != 16 || m[1] != 3 {
				return fmt.Errorf("%w: no credit: %x", errSecond, m)
			}
			p.permit = binary.BigEndian.Uint64(m[8:])
		}
		n := min(uint64(len(data)), p.permit, sent+65536)
		p.say(2, sent, data[sent:n])
		sent = n
	}
	p.say(4, sent, nil)
	kind, value, receipt, err := p.hear()
	if err != nil {
		return err
	}
	var r struct {
		StreamID, Algorithm, Digest string
		ByteLength                  uint64
	}
	if err := json.Unmarshal(receipt, &r); err != nil {
		return err
	}
	if kind != 5 || value != sent || r.ByteLength != sent || r.Algorithm != "sha256" || r.Digest != fmt.Sprintf("sha256:%x", sha256.Sum256(data)) {
		return fmt.Errorf("%w: verdict %d %d %s", errSecond, kind, value, receipt)
	}
	return nil
}

// receive is sections 5 and 6 for a receiver that permits window ahead.
func (p *secondPeer) receive(window uint64, receipt string) ([]byte, error) {
	var got []byte
	for {
		kind, value, payload, err := p.hear()
		switch {
		case err != nil:
			return nil, err
		case value != uint64(len(got)):
			return nil, fmt.Errorf("%w: kind %d at %d of %d", errSecond, kind, value, len(got))
		case kind == 4 && len(payload) == 0:
			p.say(5, value, []byte(receipt))
			return got, nil
		case kind != 2 || len(payload) == 0 || len(payload) > 65536:
			return nil, fmt.Errorf("%w: kind %d with %d bytes", errSecond, kind, len(payload))
		}
		got = append(got, payload...)
		p.say(3, uint64(len(got))+window, nil)
	}
}

// with runs f against a Mux that is the client.
func withSecondPeer(t *testing.T, f func(m *Mux, p *secondPeer)) {
	before := buffer.Lent()
	synctest.Test(t, func(t *testing.T) {
		toServer := newWire()
		m := NewMux(Config{Carrier: toServer, Client: true, Peer: "second"})
		p := &secondPeer{in: make(chan []byte, 1<<10)}
		p.out = func(b []byte) {
			if err := m.Receive(buffer.Of(b)); err != nil {
				t.Error(err)
			}
		}
		toServer.deliver = func(b *buffer.Buffer) {
			p.in <- bytes.Clone(b.Bytes())
			b.Release()
		}
		go toServer.run()
		f(m, p)
		toServer.close()
		<-toServer.done
		m.Close(errCut)
	})
	if n := buffer.Lent() - before; n != 0 {
		t.Errorf("%d buffers were not released", n)
	}
}

const theirs = `{"_isVirtualStream":true,"protocol":"virtual-stream-v1","streamId":"theirs","creatorDirection":"%s","transport":{"relayStream":1}}`

// TestSecondImplementation moves bytes in all four shapes between the package
// and what the page alone describes.
func TestSecondImplementation(t *testing.T) {
	data := noise(3_000_001, 2)
	for _, c := range []struct {
		name string
		move func(t *testing.T, m *Mux, p *secondPeer, data []byte) (got []byte, err, peerErr error)
		data []byte
	}{
		{"we create and send", weCreateAndSend, data},
		{"we create and receive", weCreateAndReceive, data},
		{"they create and send", theyCreateAndSend, data},
		{"they create and receive", theyCreateAndReceive, data[:300]},
	} {
		t.Run(c.name, func(t *testing.T) {
			withSecondPeer(t, func(m *Mux, p *secondPeer) {
				got, err, peerErr := c.move(t, m, p, c.data)
				if err != nil || peerErr != nil || !bytes.Equal(got, c.data) {
					t.Errorf("%v, %v, %d bytes", err, peerErr, len(got))
				}
			})
		})
	}
}

func weCreateAndSend(t *testing.T, m *Mux, p *secondPeer, data []byte) (got []byte, err, peerErr error) {
	s, _ := m.Offer(Options{Direction: Send})
	s.Published()
	p.number = 2
	p.say(1, 100_000, []byte(s.ID()))
	both(func() { got, peerErr = p.receive(100_000, `{"at":"noon"}`) }, func() {
		var r Receipt
		if r, err = sendAll(s, data); string(r.Raw) != `{"at":"noon"}` {
			t.Errorf("receipt %s", r.Raw)
		}
	})
	return got, err, peerErr
}

func weCreateAndReceive(t *testing.T, m *Mux, p *secondPeer, data []byte) (got []byte, err, peerErr error) {
	s, _ := m.Offer(Options{Direction: Receive})
	s.Published()
	p.number = 2
	p.say(1, 0, []byte(s.ID()))
	both(func() { peerErr = p.send(data) }, func() { got, err = receiveAll(s) })
	return got, err, peerErr
}

func theyCreateAndSend(t *testing.T, m *Mux, p *secondPeer, data []byte) (got []byte, err, peerErr error) {
	s, err := m.Open(fmt.Appendf(nil, theirs, "send"))
	if err != nil {
		t.Fatal(err)
	}
	if p.permit, err = p.awaitOpen("theirs"); err != nil || p.permit != 1<<20 {
		t.Fatal(p.permit, err)
	}
	both(func() { peerErr = p.send(data) }, func() { got, err = receiveAll(s) })
	return got, err, peerErr
}

// theyCreateAndReceive permits one byte at a time.
func theyCreateAndReceive(t *testing.T, m *Mux, p *secondPeer, data []byte) (got []byte, err, peerErr error) {
	s, err := m.Open(fmt.Appendf(nil, theirs, "receive"))
	if err != nil {
		t.Fatal(err)
	}
	if value, err := p.awaitOpen("theirs"); err != nil || value != 0 {
		t.Fatal(value, err)
	}
	p.say(3, 1, nil)
	both(func() { got, peerErr = p.receive(1, `{}`) }, func() {
		if _, err = io.Copy(s, bytes.NewReader(data)); err == nil {
			_, err = s.CloseSend(context.Background())
		}
	})
	return got, err, peerErr
}
