package hub

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// packetNet is a packet network inside the process, on which fake time advances. A
// datagram takes delay to arrive, and a test may look at each and lose it.
type packetNet struct {
	delay time.Duration

	mu      sync.Mutex
	sockets map[netip.AddrPort]*memSocket
	tap     func(from, to netip.AddrPort, b []byte) (lost bool)
	port    uint16
}

func newPacketNet() *packetNet {
	return &packetNet{delay: time.Millisecond, sockets: map[netip.AddrPort]*memSocket{}}
}

// watch has a function see every datagram; it decides which are lost.
func (n *packetNet) watch(tap func(from, to netip.AddrPort, b []byte) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tap = tap
}

// ListenPacket is the seam.
func (n *packetNet) ListenPacket(_ context.Context, _, address string) (net.PacketConn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if at.Port() == 0 {
		n.port++
		at = netip.AddrPortFrom(at.Addr(), 40000+n.port)
	}
	if n.sockets[at] != nil {
		return nil, errors.New("address in use")
	}
	s := &memSocket{net: n, at: at, wake: make(chan struct{}, 1)}
	n.sockets[at] = s
	return s, nil
}

// memSocket is one socket. One goroutine reads it at a time.
type memSocket struct {
	net  *packetNet
	at   netip.AddrPort
	wake chan struct{}

	mu       sync.Mutex
	waiting  []memPacket
	deadline time.Time
	closed   bool
}

type memPacket struct {
	from  netip.AddrPort
	bytes []byte
	due   time.Time
}

// socketHolds bounds what waits in a socket; what comes more is lost.
const socketHolds = 4096

func (s *memSocket) WriteTo(b []byte, to net.Addr) (int, error) {
	dst := to.(*net.UDPAddr).AddrPort()
	s.net.mu.Lock()
	peer, tap := s.net.sockets[dst], s.net.tap
	s.net.mu.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return 0, net.ErrClosed
	}
	if tap != nil && tap(s.at, dst, b) || peer == nil {
		return len(b), nil
	}
	peer.mu.Lock()
	if len(peer.waiting) < socketHolds {
		peer.waiting = append(peer.waiting, memPacket{s.at, append([]byte(nil), b...), time.Now().Add(s.net.delay)})
	}
	peer.mu.Unlock()
	signal(peer.wake)
	return len(b), nil
}

func (s *memSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		s.mu.Lock()
		now := time.Now()
		next := s.deadline
		switch {
		case s.closed:
			s.mu.Unlock()
			return 0, nil, net.ErrClosed
		case !s.deadline.IsZero() && !now.Before(s.deadline):
			s.mu.Unlock()
			return 0, nil, os.ErrDeadlineExceeded
		case len(s.waiting) > 0:
			p := s.waiting[0]
			if !p.due.After(now) {
				s.waiting[0], s.waiting = memPacket{}, s.waiting[1:]
				s.mu.Unlock()
				return copy(b, p.bytes), net.UDPAddrFromAddrPort(p.from), nil
			}
			if next.IsZero() || p.due.Before(next) {
				next = p.due
			}
		}
		s.mu.Unlock()
		if next.IsZero() {
			<-s.wake
			continue
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (s *memSocket) Close() error {
	s.net.mu.Lock()
	if s.net.sockets[s.at] == s {
		delete(s.net.sockets, s.at)
	}
	s.net.mu.Unlock()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	signal(s.wake)
	return nil
}

func (s *memSocket) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(s.at) }

func (s *memSocket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	s.deadline = t
	s.mu.Unlock()
	signal(s.wake)
	return nil
}

func (s *memSocket) SetDeadline(t time.Time) error    { return s.SetReadDeadline(t) }
func (s *memSocket) SetWriteDeadline(time.Time) error { return nil }
