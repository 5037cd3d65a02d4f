package userspace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/tunnel"
)

const (
	// nic is the one interface.
	nic tcpip.NICID = 1

	// maxUnread bounds the packets that wait to be read: what 100 Mbit/s carry in 100 ms.
	maxUnread = 1024

	// batch is how many packets are read or written at once.
	batch = 16
)

// A Stack is a node.Device, and the network that applications see of it. Its methods may be
// called from any goroutine.
type Stack struct {
	stack    *stack.Stack
	link     *channel.Endpoint
	workload []netip.Addr

	open context.Context // until Close
	stop context.CancelFunc
	over chan struct{} // closed when the stack is gone

	// Held while sockets are made and while Close begins: none is made behind Close that
	// nobody would end.
	mu      sync.Mutex
	control netip.Addr // not valid before the first tunnel
}

// New returns a stack with those workload addresses, at least one, all IPv4.
func New(workload ...netip.Addr) (*Stack, error) {
	if len(workload) == 0 {
		return nil, errors.New("stack has no workload address")
	}
	s := &Stack{
		stack: stack.New(stack.Options{
			NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
			TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
			HandleLocal:        true,
		}),
		link:     channel.New(maxUnread, tunnel.DefaultInnerMTU, ""),
		workload: workload,
		over:     make(chan struct{}),
	}
	s.open, s.stop = context.WithCancel(context.Background())
	if err := s.build(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stack) build() error {
	sack := tcpip.TCPSACKEnabled(true)
	if err := s.stack.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		return fmt.Errorf("enable sack: %v", err)
	}
	// gVisor's RACK (RFC 8985) sends one segment in a hundred milliseconds, or none any more,
	// after a burst of losses such as a full queue makes. Without it, SACK and the
	// retransmission timer recover in a fraction of a second.
	recovery := tcpip.TCPRecovery(0)
	if err := s.stack.SetTransportProtocolOption(tcp.ProtocolNumber, &recovery); err != nil {
		return fmt.Errorf("disable rack: %v", err)
	}
	if err := s.stack.CreateNIC(nic, s.link); err != nil {
		return fmt.Errorf("create interface: %v", err)
	}
	for _, addr := range s.workload {
		if err := s.add(addr); err != nil {
			return err
		}
	}
	s.stack.AddRoute(tcpip.Route{Destination: header.IPv4EmptySubnet, NIC: nic})
	return nil
}

func (s *Stack) add(addr netip.Addr) error {
	if !addr.Is4() {
		return fmt.Errorf("address %v is not ipv4", addr)
	}
	full := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: gvisorAddr(addr).WithPrefix()}
	if err := s.stack.AddProtocolAddress(nic, full, stack.AddressProperties{}); err != nil {
		return fmt.Errorf("add address %v: %v", addr, err)
	}
	return nil
}

// Configure takes the control address and the inner MTU of the hub.
func (s *Stack) Configure(settings node.Settings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open.Err() != nil {
		return os.ErrClosed
	}
	s.link.SetMTU(uint32(settings.InnerMTU))
	control := settings.ControlAddress.Addr()
	if control == s.control {
		return nil
	}
	if s.control.IsValid() {
		if err := s.stack.RemoveAddress(nic, gvisorAddr(s.control)); err != nil {
			return fmt.Errorf("remove address %v: %v", s.control, err)
		}
		s.control = netip.Addr{}
	}
	if err := s.add(control); err != nil {
		return err
	}
	s.control = control
	return nil
}

// ControlAddress returns the control address, which is not valid before the first tunnel.
func (s *Stack) ControlAddress() netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control
}

// Read waits for packets of the stack.
func (s *Stack) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	packet := s.link.ReadContext(s.open)
	if packet == nil {
		return 0, os.ErrClosed
	}
	for {
		view := packet.ToView()
		packet.DecRef()
		sizes[n] = copy(bufs[n][offset:], view.AsSlice())
		view.Release()
		n++
		if n == min(len(bufs), batch) {
			return n, nil
		}
		if packet = s.link.Read(); packet == nil {
			return n, nil
		}
	}
}

// Write gives packets to the stack, which copies them.
func (s *Stack) Write(bufs [][]byte, offset int) (n int, err error) {
	if s.open.Err() != nil {
		return 0, os.ErrClosed
	}
	for _, b := range bufs {
		packet := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b[offset:])})
		s.link.InjectInbound(ipv4.ProtocolNumber, packet)
		packet.DecRef()
		n++
	}
	return n, nil
}

// MTU returns the longest packet of the stack.
func (s *Stack) MTU() (int, error) { return int(s.link.MTU()), nil }

// BatchSize returns how many packets are read or written at once.
func (s *Stack) BatchSize() int { return batch }

// Close ends everything.
func (s *Stack) Close() error {
	s.mu.Lock()
	first := s.open.Err() == nil
	s.stop()
	s.mu.Unlock()
	if first {
		s.stack.Close()
		s.stack.RemoveNIC(nic)
		s.stack.Wait()
		s.link.Close()
		close(s.over)
	}
	<-s.over
	return nil
}

func gvisorAddr(a netip.Addr) tcpip.Address { return tcpip.AddrFrom4(a.As4()) }

// endpoint returns an address of the stack or of another node.
func endpoint(a netip.AddrPort) tcpip.FullAddress {
	full := tcpip.FullAddress{NIC: nic, Port: a.Port()}
	if !a.Addr().IsUnspecified() {
		full.Addr = gvisorAddr(a.Addr())
	}
	return full
}

// parse reads network and address in the form of package net, with an address literal.
func parse(network, address string) (tcp bool, at netip.AddrPort, err error) {
	switch network {
	case "tcp", "tcp4":
		tcp = true
	case "udp", "udp4":
	default:
		return false, at, net.UnknownNetworkError(network)
	}
	at, err = netip.ParseAddrPort(address)
	if err == nil && !at.Addr().Is4() {
		err = &net.AddrError{Err: "not an ipv4 address", Addr: address}
	}
	return tcp, at, err
}

// DialContext connects to an address literal over "tcp" or "udp", from the first workload
// address.
func (s *Stack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return s.DialFrom(ctx, s.workload[0], network, address)
}

// DialFrom is DialContext from another address of the stack.
func (s *Stack) DialFrom(ctx context.Context, from netip.Addr, network, address string) (net.Conn, error) {
	isTCP, to, err := parse(network, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	local, remote := endpoint(netip.AddrPortFrom(from, 0)), endpoint(to)
	if !isTCP {
		return made(s, "dial", network, func() (net.Conn, error) {
			return gonet.DialUDP(s.stack, &local, &remote, ipv4.ProtocolNumber)
		})
	}
	// This one waits, so it ends by its context if Close comes between.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.open, cancel)()
	conn, err := gonet.DialTCPWithBind(ctx, s.stack, local, remote, ipv4.ProtocolNumber)
	if err != nil {
		return nil, asOfSystem(err) // and no interface around a nil pointer
	}
	return conn, nil
}

// Listen listens on an address literal over "tcp"; 0.0.0.0 is every address of the stack.
func (s *Stack) Listen(network, address string) (net.Listener, error) {
	isTCP, at, err := parse(network, address)
	if err == nil && !isTCP {
		err = net.UnknownNetworkError(network)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	return made(s, "listen", network, func() (net.Listener, error) {
		return gonet.ListenTCP(s.stack, endpoint(at), ipv4.ProtocolNumber)
	})
}

// ListenPacket is Listen over "udp".
func (s *Stack) ListenPacket(network, address string) (net.PacketConn, error) {
	isTCP, at, err := parse(network, address)
	if err == nil && isTCP {
		err = net.UnknownNetworkError(network)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	local := endpoint(at)
	return made(s, "listen", network, func() (net.PacketConn, error) {
		return gonet.DialUDP(s.stack, &local, nil, ipv4.ProtocolNumber)
	})
}

// made makes a socket, unless the stack is closed. It gives no interface around a nil
// pointer.
func made[T any](s *Stack, operation, network string, make func() (T, error)) (T, error) {
	var none T
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open.Err() != nil {
		return none, &net.OpError{Op: operation, Net: network, Err: net.ErrClosed}
	}
	socket, err := make()
	if err != nil {
		return none, err
	}
	return socket, nil
}
