package node

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// listen opens the socket of one attempt. It is bound to no address of the machine and
// connected to none of the hub: the kernel chooses the way of each packet, so that a
// connection outlives a change of the machine's address.
func (c *Client) listen(ctx context.Context, to netip.Addr) (net.PacketConn, error) {
	network := "udp4"
	if !to.Unmap().Is4() {
		network = "udp6"
	}
	socket, err := c.listenPacket(ctx, network, ":0")
	if err != nil {
		return nil, err
	}
	if u, ok := socket.(*net.UDPConn); ok {
		return &udpSocket{UDPConn: u, unsent: &c.traffic.unsent}, nil
	}
	return socket, nil
}

func systemListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	var config net.ListenConfig
	return config.ListenPacket(ctx, network, address)
}

// udpSocket takes a packet that the machine has no way for now as one that was lost.
// quic-go ends the connection at the first error of a send, and between two networks
// every send is one.
type udpSocket struct {
	*net.UDPConn
	unsent *atomic.Uint64
}

// WriteMsgUDP is the method that quic-go sends with.
func (s *udpSocket) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = s.UDPConn.WriteMsgUDP(b, oob, to)
	if err != nil && passing(err) {
		s.unsent.Add(1)
		return len(b), len(oob), nil
	}
	return n, oobn, err
}

// WriteTo is the one that it sends with where it cannot use the other.
func (s *udpSocket) WriteTo(b []byte, to net.Addr) (n int, err error) {
	n, err = s.UDPConn.WriteTo(b, to)
	if err != nil && passing(err) {
		s.unsent.Add(1)
		return len(b), nil
	}
	return n, err
}

// passing reports whether an error of a send says that there is no way or no room now.
// EPERM and EACCES are what a packet filter and a route that forbids answer. That a packet
// is too large for its segments or its path (EIO, EMSGSIZE, EINVAL) is for quic-go to know.
func passing(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN,
		syscall.EADDRNOTAVAIL, syscall.EPERM, syscall.EACCES, syscall.ENOBUFS, syscall.ECONNREFUSED,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
