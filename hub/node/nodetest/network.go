package nodetest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// Latency is how long a packet is under way where nothing else is said.
const Latency = 10 * time.Millisecond

// A Flight is one datagram that was sent.
type Flight struct {
	From, To netip.AddrPort // as the receiver sees them
	Number   int            // from 1, of those from From's socket to To's
	Bytes    []byte
}

// A Network carries datagrams between sockets of one process.
type Network struct {
	mu      sync.Mutex
	sockets map[netip.AddrPort]*Socket
	seen    map[netip.AddrPort]netip.AddrPort // the address of a socket, as others see it
	behind  map[netip.AddrPort]netip.AddrPort // and back
	sent    map[[2]netip.AddrPort]int
	fate    func(Flight) []time.Duration
	port    uint16
	df      syscall.RawConn // of a socket that stands for all, nil where QUIC is to search for no more
}

// NewNetwork returns a network that loses nothing.
func NewNetwork() *Network {
	return &Network{
		sockets: map[netip.AddrPort]*Socket{},
		seen:    map[netip.AddrPort]netip.AddrPort{},
		behind:  map[netip.AddrPort]netip.AddrPort{},
		sent:    map[[2]netip.AddrPort]int{},
		port:    20000,
	}
}

// SetFate sets what becomes of each datagram: it arrives once after each of the durations,
// and never where there is none. A nil fate is one arrival after Latency.
func (n *Network) SetFate(fate func(Flight) []time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fate = fate
}

// Searches has QUIC search for larger packets on sockets that are opened from now on, as it
// does on those of the system. The caller keeps the socket open, whose option it is to send
// nothing in fragments; nothing is sent on it.
func (n *Network) Searches(socket syscall.Conn) error {
	df, err := socket.SyscallConn()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.df = df
	return err
}

// Rebind gives a socket another address in the eyes of all others, as a NAT does that has
// forgotten it. What is sent to the one before is lost.
func (n *Network) Rebind(socket, as netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.behind, n.seen[socket])
	n.seen[socket], n.behind[as] = as, socket
}

// Sockets returns the addresses of all open sockets.
func (n *Network) Sockets() []netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []netip.AddrPort
	for addr := range n.sockets {
		all = append(all, addr)
	}
	return all
}

// Listen opens a socket at an address.
func (n *Network) Listen(at netip.AddrPort) (*Socket, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sockets[at] != nil {
		return nil, fmt.Errorf("listen on %v: %w", at, os.ErrExist)
	}
	s := &Socket{
		net: n, addr: at, in: make(chan arrival, 1024),
		closed: make(chan struct{}), moved: make(chan struct{}, 1),
	}
	n.sockets[at] = s
	return s, nil
}

// ListenPacket opens a socket at a new port of a machine, in the form of node.Config.
func (n *Network) ListenPacket(machine netip.Addr) func(context.Context, string, string) (net.PacketConn, error) {
	return func(context.Context, string, string) (net.PacketConn, error) {
		n.mu.Lock()
		n.port++
		at := netip.AddrPortFrom(machine, n.port)
		n.mu.Unlock()
		s, err := n.Listen(at)
		if err != nil {
			return nil, err
		}
		return s.Conn(), nil
	}
}

// Conn returns the socket as QUIC takes it: one of a network that Searches shows that.
func (s *Socket) Conn() net.PacketConn {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if s.net.df == nil {
		return s
	}
	return searching{s, s.net.df}
}

// searching is a socket on which QUIC searches for larger packets.
type searching struct {
	*Socket
	df syscall.RawConn
}

// SyscallConn returns the socket that stands for this one.
func (s searching) SyscallConn() (syscall.RawConn, error) { return s.df, nil }

func (n *Network) send(from *Socket, to netip.AddrPort, b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	source := from.addr
	if as, ok := n.seen[source]; ok {
		source = as
	}
	target := to
	if socket, ok := n.behind[to]; ok {
		target = socket
	} else if _, hidden := n.seen[to]; hidden {
		return
	}
	pair := [2]netip.AddrPort{from.addr, target}
	n.sent[pair]++
	f := Flight{From: source, To: to, Number: n.sent[pair], Bytes: append([]byte(nil), b...)}
	delays := []time.Duration{Latency}
	if n.fate != nil {
		delays = n.fate(f)
	}
	for _, delay := range delays {
		time.AfterFunc(delay, func() { n.deliver(target, f) })
	}
}

func (n *Network) deliver(target netip.AddrPort, f Flight) {
	n.mu.Lock()
	s := n.sockets[target]
	n.mu.Unlock()
	if s == nil {
		return
	}
	select {
	case s.in <- arrival{from: f.From, bytes: f.Bytes}:
	default: // its buffer is full
	}
}

type arrival struct {
	from  netip.AddrPort
	bytes []byte
}

// A Socket is a net.PacketConn.
type Socket struct {
	net    *Network
	addr   netip.AddrPort
	in     chan arrival
	once   sync.Once
	closed chan struct{}
	moved  chan struct{} // the deadline is another one; has room for one

	mu       sync.Mutex
	deadline time.Time
}

// ReadFrom waits for a datagram.
func (s *Socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		s.mu.Lock()
		deadline := s.deadline
		s.mu.Unlock()
		var expired <-chan time.Time
		var timer *time.Timer
		if !deadline.IsZero() {
			timer = time.NewTimer(time.Until(deadline))
			expired = timer.C
		}
		a, err, again := s.next(expired)
		if timer != nil {
			timer.Stop()
		}
		if !again {
			if err != nil {
				return 0, nil, &net.OpError{Op: "read", Net: "udp", Err: err}
			}
			return copy(b, a.bytes), net.UDPAddrFromAddrPort(a.from), nil
		}
	}
}

func (s *Socket) next(expired <-chan time.Time) (a arrival, err error, again bool) {
	select {
	case <-s.closed:
		return a, net.ErrClosed, false
	case <-expired:
		return a, os.ErrDeadlineExceeded, false
	case <-s.moved:
		return a, nil, true
	case a = <-s.in:
		return a, nil, false
	}
}

// WriteTo sends a datagram.
func (s *Socket) WriteTo(b []byte, to net.Addr) (int, error) {
	select {
	case <-s.closed:
		return 0, &net.OpError{Op: "write", Net: "udp", Err: net.ErrClosed}
	default:
	}
	s.net.send(s, to.(*net.UDPAddr).AddrPort(), b)
	return len(b), nil
}

// Close closes the socket.
func (s *Socket) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.net.mu.Lock()
		defer s.net.mu.Unlock()
		delete(s.net.sockets, s.addr)
	})
	return nil
}

// LocalAddr returns the socket's own address.
func (s *Socket) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(s.addr) }

// SetDeadline is SetReadDeadline: a write never waits.
func (s *Socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetReadDeadline ends a read that waits longer.
func (s *Socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	s.deadline = t
	s.mu.Unlock()
	select {
	case s.moved <- struct{}{}:
	default:
	}
	return nil
}

// SetWriteDeadline does nothing.
func (s *Socket) SetWriteDeadline(time.Time) error { return nil }

// SetReadBuffer does nothing; without it quic-go complains.
func (s *Socket) SetReadBuffer(int) error { return nil }

// SetWriteBuffer does nothing; without it quic-go complains.
func (s *Socket) SetWriteBuffer(int) error { return nil }
