package node

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A send that the machine has no way for is a packet lost, on both ways that quic-go sends.
func TestSocketLosesWhatHasNoWay(t *testing.T) {
	// A socket that may not broadcast is refused by the kernel before anything leaves.
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 0) })
		return err
	}}
	conn, err := config.ListenPacket(context.Background(), "udp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var unsent atomic.Uint64
	s := &udpSocket{UDPConn: conn.(*net.UDPConn), unsent: &unsent}
	to := &net.UDPAddr{IP: net.IPv4bcast, Port: 9}
	if _, err := conn.WriteTo([]byte{1}, to); !passing(err) {
		t.Fatalf("the system answers %v", err)
	}
	if n, err := s.WriteTo([]byte{1, 2}, to); n != 2 || err != nil {
		t.Errorf("WriteTo: %d, %v", n, err)
	}
	if n, _, err := s.WriteMsgUDP([]byte{1, 2}, nil, to); n != 2 || err != nil {
		t.Errorf("WriteMsgUDP: %d, %v", n, err)
	}
	if got := unsent.Load(); got != 2 {
		t.Errorf("%d counted, want 2", got)
	}
	conn.Close()
	if _, err := s.WriteTo([]byte{1}, to); err == nil {
		t.Error("a closed socket sends")
	}
}
