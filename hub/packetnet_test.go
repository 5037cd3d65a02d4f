package hub

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// packetNet is a packet network inside the process, on which fake time advances. A
// datagram takes delay to arrive, and a test may look at each and lose it, or say when and
// how often it arrives.
type packetNet struct {
	delay time.Duration

	mu      sync.Mutex
	sockets map[netip.AddrPort]*memSocket
	tap     func(from, to netip.AddrPort, b []byte) (lost bool)
	fate    func(flight) []time.Duration
	sent    map[[2]netip.AddrPort]int
	seen    map[netip.AddrPort]netip.AddrPort // a socket's address, as others see it
	behind  map[netip.AddrPort]netip.AddrPort // and back
	port    uint16
	df      syscall.RawConn // of a socket of the system, where QUIC is to search for larger packets; else nil
}

func newPacketNet() *packetNet {
	return &packetNet{
		delay: time.Millisecond, sockets: map[netip.AddrPort]*memSocket{}, sent: map[[2]netip.AddrPort]int{},
		seen: map[netip.AddrPort]netip.AddrPort{}, behind: map[netip.AddrPort]netip.AddrPort{},
	}
}

// flight is one datagram that was sent.
type flight struct {
	from, to netip.AddrPort // the sockets
	number   int            // from 1, of those from one to the other
	bytes    []byte
}

// decide has a function say of every datagram after which times it arrives: never, where
// there is none.
func (n *packetNet) decide(fate func(flight) []time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fate = fate
}

// rebind gives a socket another address in the eyes of all others, as a NAT does that has
// forgotten it. What is sent to the one before is lost.
func (n *packetNet) rebind(socket, as netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.behind, n.seen[socket])
	n.seen[socket], n.behind[as] = as, socket
}

// forge delivers a datagram that claims to come from an address.
func (n *packetNet) forge(from, to netip.AddrPort, b []byte) {
	n.mu.Lock()
	peer := n.sockets[to]
	n.mu.Unlock()
	if peer != nil {
		peer.take(from, b, n.delay)
	}
}

// route returns the socket behind an address, nil for none, what is seen of the sender, and
// when the datagram arrives.
func (n *packetNet) route(from, to netip.AddrPort, b []byte) (peer *memSocket, source netip.AddrPort, delays []time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	source = from
	if as, ok := n.seen[from]; ok {
		source = as
	}
	if socket, ok := n.behind[to]; ok {
		to = socket
	} else if _, hidden := n.seen[to]; hidden {
		return nil, source, nil
	}
	delays = []time.Duration{n.delay}
	if n.fate != nil {
		pair := [2]netip.AddrPort{from, to}
		n.sent[pair]++
		delays = n.fate(flight{from, to, n.sent[pair], b})
	}
	return n.sockets[to], source, delays
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
	if n.df != nil {
		return searchingSocket{s, n.df}, nil
	}
	return s, nil
}

// searchingSocket is a socket on which QUIC searches for larger packets.
type searchingSocket struct {
	*memSocket
	df syscall.RawConn
}

func (s searchingSocket) SyscallConn() (syscall.RawConn, error) { return s.df, nil }

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
	tap := s.net.tap
	s.net.mu.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return 0, net.ErrClosed
	}
	if tap != nil && tap(s.at, dst, b) {
		return len(b), nil
	}
	if peer, source, delays := s.net.route(s.at, dst, b); peer != nil {
		for _, delay := range delays {
			peer.take(source, b, delay)
		}
	}
	return len(b), nil
}

// take holds a datagram until it arrives.
func (s *memSocket) take(from netip.AddrPort, b []byte, delay time.Duration) {
	p := memPacket{from, append([]byte(nil), b...), time.Now().Add(delay)}
	s.mu.Lock()
	if len(s.waiting) < socketHolds {
		at := len(s.waiting)
		for at > 0 && s.waiting[at-1].due.After(p.due) {
			at--
		}
		s.waiting = slices.Insert(s.waiting, at, p)
	}
	s.mu.Unlock()
	signal(s.wake)
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
