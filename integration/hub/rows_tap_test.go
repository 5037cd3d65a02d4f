package hub_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// tap is a peer's socket in the hands of a test: it hands QUIC what came at a pace, or
// nothing any more, and knows what came before an instant and what behind it.
type tap struct {
	pace atomic.Int64 // nanoseconds between two datagrams

	socket *net.UDPConn
	pump   sync.WaitGroup
	over   <-chan struct{} // closed with the connection; set when it stands

	received [3]atomic.Uint64 // short headers that QUIC is done with, and packets that it gave up for want of room

	mu     sync.Mutex
	queue  [][]byte
	last   []byte // the last short header that came
	from   net.Addr
	handed uint64 // short headers handed to QUIC
	deaf   bool
	gate   int           // datagrams that QUIC may still have, -1 for any number
	mark   []byte        // the datagram that stands for an instant
	marked chan struct{} // closed when it came
	ready  chan struct{} // there may be something to do; has room for one
	ended  chan struct{}
	once   sync.Once
}

// tapRoom is how many datagrams wait at a pace. More are lost, as in a router, but for those
// of no more bytes than tapSmall: how a connection was closed is told once.
const (
	tapRoom  = 64
	tapSmall = 200
)

const (
	doneWith = iota // by QUIC
	lostIn          // datagrams that QUIC dropped since the test did not read them
)

func newTap() *tap {
	return &tap{gate: -1, ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// begin takes the socket, and reads it from now on.
func (t *tap) begin(socket *net.UDPConn) {
	socket.SetReadBuffer(4 << 20)
	t.socket = socket
	t.pump.Go(func() {
		b := make([]byte, 1<<16)
		for {
			n, from, err := socket.ReadFrom(b)
			if err != nil {
				return
			}
			t.came(bytes.Clone(b[:n]), from)
		}
	})
}

func (t *tap) came(datagram []byte, from net.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.mark != nil && bytes.Equal(datagram, t.mark):
		if t.last != nil {
			// Once more: QUIC tells of a packet before it takes what is in it, and has taken
			// it when it has found that the next one is the same.
			t.queue = append(t.queue, t.last)
		}
		t.mark, t.gate = nil, len(t.queue)
		close(t.marked)
	case t.pace.Load() > 0 && len(t.queue) >= tapRoom && len(datagram) > tapSmall:
	default:
		t.queue, t.from = append(t.queue, datagram), from
		if datagram[0] < 0x80 {
			t.last = datagram
		}
	}
	t.wake()
}

func (t *tap) wake() {
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

// deafen lets QUIC read nothing any more: it acknowledges nothing, and does not hear the
// hub go.
func (t *tap) deafen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deaf = true
}

// next takes what QUIC may have.
func (t *tap) next(b []byte) (n int, from net.Addr, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deaf || len(t.queue) == 0 || t.gate == 0 {
		return 0, nil, false
	}
	if t.gate > 0 {
		t.gate--
	}
	datagram := t.queue[0]
	t.queue = t.queue[1:]
	if datagram[0] < 0x80 {
		t.handed++
	}
	return copy(b, datagram), t.from, true
}

// ReadFrom is QUIC's.
func (t *tap) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		select {
		case <-t.ended:
			return 0, nil, os.ErrDeadlineExceeded
		default:
		}
		if n, from, ok := t.next(b); ok {
			time.Sleep(time.Duration(t.pace.Load())) // the line is that slow
			return n, from, nil
		}
		select {
		case <-t.ready:
		case <-t.ended:
		}
	}
}

// upTo lets QUIC have what has come so far, and nothing behind it until release. When it
// returns, QUIC is done with all of it.
func (t *tap) upTo(ctx context.Context) error {
	mark := make([]byte, 16)
	rand.Read(mark)
	marked := make(chan struct{})
	t.mu.Lock()
	t.mark, t.marked = mark, marked
	t.mu.Unlock()
	// It waits in the socket behind all that the hub has sent.
	own, err := net.DialUDP("udp4", nil, t.socket.LocalAddr().(*net.UDPAddr))
	if err != nil {
		return err
	}
	defer own.Close()
	if _, err := own.Write(mark); err != nil {
		return err
	}
	select {
	case <-marked:
	case <-ctx.Done():
		return fmt.Errorf("the mark was lost: %w", ctx.Err())
	}
	for t.behind() {
		select {
		case <-t.over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Microsecond):
		}
	}
	return nil
}

// behind reports whether QUIC has something to do yet.
func (t *tap) behind() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gate > 0 || t.received[doneWith].Load() < t.handed
}

// release lets QUIC have everything again.
func (t *tap) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gate = -1
	t.wake()
}

// WriteTo is QUIC's.
func (t *tap) WriteTo(b []byte, to net.Addr) (int, error) { return t.socket.WriteTo(b, to) }

// LocalAddr is QUIC's.
func (t *tap) LocalAddr() net.Addr { return t.socket.LocalAddr() }

// SetDeadline is QUIC's.
func (t *tap) SetDeadline(at time.Time) error { return t.SetReadDeadline(at) }

// SetReadDeadline is QUIC's, which sets one to end ReadFrom.
func (t *tap) SetReadDeadline(at time.Time) error {
	if !at.IsZero() && !at.After(time.Now()) {
		t.once.Do(func() { close(t.ended) })
	}
	return nil
}

// SetWriteDeadline is QUIC's.
func (t *tap) SetWriteDeadline(time.Time) error { return nil }

// SetReadBuffer is QUIC's.
func (t *tap) SetReadBuffer(int) error { return nil }

// SetWriteBuffer is QUIC's.
func (t *tap) SetWriteBuffer(int) error { return nil }

// Close ends the socket.
func (t *tap) Close() error {
	t.once.Do(func() { close(t.ended) })
	err := t.socket.Close()
	t.pump.Wait()
	return err
}

// trace lets QUIC tell what it is done with.
func (t *tap) trace(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return tracing{t} }

// tracing is a tap as QUIC's trace.
type tracing struct{ t *tap }

// AddProducer is the trace's.
func (x tracing) AddProducer() qlogwriter.Recorder { return x }

// SupportsSchemas is the trace's.
func (x tracing) SupportsSchemas(string) bool { return true }

// RecordEvent is told once of each packet, when it was taken or given up.
func (x tracing) RecordEvent(e qlogwriter.Event) {
	switch e := e.(type) {
	case qlog.PacketReceived:
		if e.Header.PacketType == qlog.PacketType1RTT {
			x.t.received[doneWith].Add(1)
		}
	case qlog.PacketDropped:
		if !slices.Contains([]qlog.PacketType{qlog.PacketTypeInitial, qlog.PacketTypeHandshake, qlog.PacketTypeRetry}, e.Header.PacketType) {
			x.t.received[doneWith].Add(1)
		}
	case qlog.DatagramDropped:
		x.t.received[lostIn].Add(1)
	}
}

// Close is the trace's.
func (x tracing) Close() error { return nil }
