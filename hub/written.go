package hub

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/quic-go/quic-go"
)

// written counts the buffers of one connection that QUIC's writer has handed to the
// system. QUIC writes those of a connection one after another, as it has sealed them.
type written struct {
	count   atomic.Uint64
	room    atomic.Int64 // behind the last write, in its buffer
	awaited atomic.Bool  // a fence waits for them
	wake    chan struct{}
}

// finished notes that a write has ended. One that failed is none: where the system does
// not cut a buffer into packets (GSO), QUIC writes it again in pieces, which lie one
// behind the other and are one buffer here.
func (w *written) finished(b []byte, err error) {
	if err == nil {
		if int64(cap(b)) != w.room.Load() {
			w.count.Add(1)
		}
		w.room.Store(int64(cap(b) - len(b)))
	}
	if w.awaited.Load() {
		signal(w.wake)
	}
}

// writes knows the connections whose writes are counted, by the address to which QUIC
// writes, as the pointer that QUIC has of it: QUIC allocates one for each packet that
// comes, and writes all that it queues for a connection to the one of the packet that
// began it, or brought it to another address. So another connection of the same member,
// even from the same port, is another one here, and what QUIC writes past its queue is
// none. The zero value knows none.
type writes struct{ of sync.Map } // net.Addr to *written

// finished notes that a write has ended.
func (w *writes) finished(b []byte, to net.Addr, err error) {
	if x, ok := w.of.Load(to); ok {
		x.(*written).finished(b, err)
	}
}

// udpSocket is what QUIC asks of a socket before it uses what the system has to offer:
// many packets at a call, the path's size, congestion marks.
type udpSocket interface {
	quic.OOBCapablePacketConn
	net.Conn
	SetWriteBuffer(int) error
}

// counted returns a socket whose writes are counted, and which can do for QUIC what the
// one below can.
func (w *writes) counted(socket net.PacketConn) net.PacketConn {
	plain := countedConn{socket, w}
	switch s := socket.(type) {
	case udpSocket:
		return countedUDP{s, w}
	case syscall.Conn:
		return countedRaw{plain, s}
	}
	return plain
}

type countedUDP struct {
	udpSocket
	writes *writes
}

func (c countedUDP) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = c.udpSocket.WriteMsgUDP(b, oob, to)
	c.writes.finished(b, to, err)
	return n, oobn, err
}

// WriteTo is what QUIC uses where it has no messages of the system's.
func (c countedUDP) WriteTo(b []byte, to net.Addr) (n int, err error) {
	n, err = c.udpSocket.WriteTo(b, to)
	c.writes.finished(b, to, err)
	return n, err
}

type countedConn struct {
	net.PacketConn
	writes *writes
}

func (c countedConn) WriteTo(b []byte, to net.Addr) (n int, err error) {
	n, err = c.PacketConn.WriteTo(b, to)
	c.writes.finished(b, to, err)
	return n, err
}

type countedRaw struct {
	countedConn
	syscall.Conn
}

// follow has the writes of the connection counted, also where the member has moved. Only
// the sender calls it.
func (s *session) follow() {
	if to := s.conn.RemoteAddr(); to != s.followed {
		s.unfollow()
		s.followed = to
		s.hub.writes.of.Store(to, &s.out.written)
	}
}

// unfollow ends that. Only the sender calls it.
func (s *session) unfollow() {
	if s.followed != nil {
		s.hub.writes.of.Delete(s.followed)
	}
}
