package main

import (
	"context"
	"net"
	"syscall"
	"testing"

	"serve.zone/relay/appliance"
)

// What the kernel may hold unsent towards Cloudly is bounded on the connection that
// the appliance dials.
func TestUnsentBytesAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := seams(appliance.Config{}).Dial(context.Background(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got int
	if err := raw.Control(func(fd uintptr) {
		got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat)
	}); err != nil {
		t.Fatal(err)
	}
	if err != nil || got != unsentLimit {
		t.Errorf("the kernel holds %d bytes unsent, %v", got, err)
	}
}
