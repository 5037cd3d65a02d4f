package userspace

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"serve.zone/relay/hub/node"
)

var (
	workload = netip.MustParseAddr("10.1.0.1")
	settings = node.Settings{
		ControlAddress: netip.MustParsePrefix("10.200.0.7/24"),
		HubAddress:     netip.MustParseAddr("10.200.0.1"),
		InnerMTU:       1280,
	}
)

func TestConfigureMovesTheControlAddress(t *testing.T) {
	s, err := New(workload)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.ControlAddress().IsValid() {
		t.Error("there is a control address before the first tunnel")
	}
	other := settings
	other.ControlAddress = netip.MustParsePrefix("10.200.0.9/24")
	for _, settings := range []node.Settings{settings, settings, other, settings} {
		if err := s.Configure(settings); err != nil {
			t.Fatal(err)
		}
		control := settings.ControlAddress.Addr()
		if mtu, _ := s.MTU(); s.ControlAddress() != control || mtu != 1280 {
			t.Errorf("control address %v, mtu %d", s.ControlAddress(), mtu)
		}
		var got []string
		for _, address := range s.stack.NICInfo()[nic].ProtocolAddresses {
			got = append(got, address.AddressWithPrefix.String())
		}
		slices.Sort(got)
		if want := []string{"10.1.0.1/32", control.String() + "/32"}; !slices.Equal(got, want) {
			t.Errorf("addresses %v, want %v", got, want)
		}
	}
}

// A dial has the source that was asked for, in a packet of the stack no longer than the MTU.
func TestDialHasItsSource(t *testing.T) {
	s, err := New(workload)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Configure(settings); err != nil {
		t.Fatal(err)
	}
	bufs, sizes := [][]byte{make([]byte, 1500)}, []int{0}
	for _, from := range []netip.Addr{workload, settings.ControlAddress.Addr()} {
		conn, err := s.DialFrom(t.Context(), from, "udp", "10.2.0.1:53")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if n, err := s.Read(bufs, sizes, node.Headroom); n != 1 || err != nil || sizes[0] != 128 {
			t.Fatalf("read %d packets, %d bytes: %v", n, sizes[0], err)
		}
		if got := netip.AddrFrom4([4]byte(bufs[0][node.Headroom+12:])); got != from {
			t.Errorf("source %v, want %v", got, from)
		}
	}
}

// Close ends what waits: reads, listeners, dials; and the stack takes nothing more.
func TestCloseEndsEverything(t *testing.T) {
	s, err := New(workload)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := s.Listen("tcp", "0.0.0.0:80")
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan error, 3)
	go func() { _, err := listener.Accept(); ends <- err }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() { _, err := s.DialContext(ctx, "tcp", "10.2.0.1:80"); ends <- err }()
	go func() {
		for {
			if _, err := s.Read([][]byte{make([]byte, 1500)}, []int{0}, 0); err != nil {
				ends <- err
				return
			}
		}
	}()
	s.Close()
	for range 3 {
		select {
		case err := <-ends:
			if err == nil {
				t.Error("something went on")
			}
		case <-ctx.Done():
			t.Fatal("something waits for ever")
		}
	}
	if _, err := s.Write([][]byte{make([]byte, 40)}, 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write: %v", err)
	}
	if _, err := s.Listen("tcp", "0.0.0.0:81"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listen: %v", err)
	}
	if _, err := s.DialContext(ctx, "udp", "10.2.0.1:81"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dial: %v", err)
	}
	if _, err := s.DialContext(ctx, "tcp", "10.2.0.1:81"); err == nil || ctx.Err() != nil {
		t.Errorf("dial: %v", err)
	}
	s.Close()
}

func TestWrongAddresses(t *testing.T) {
	for _, addrs := range [][]netip.Addr{nil, {netip.MustParseAddr("::1")}} {
		if s, err := New(addrs...); err == nil {
			s.Close()
			t.Errorf("%v is taken", addrs)
		}
	}
	s, err := New(workload)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, bad := range [][2]string{{"tcp6", "10.1.0.1:1"}, {"tcp", "[::1]:1"}, {"tcp", "host:1"}, {"unix", "/x"}} {
		if conn, err := s.DialContext(t.Context(), bad[0], bad[1]); err == nil || conn != nil {
			t.Errorf("dial %v: %v", bad, err)
		}
		if listener, err := s.Listen(bad[0], bad[1]); err == nil || listener != nil {
			t.Errorf("listen %v: %v", bad, err)
		}
		if socket, err := s.ListenPacket(bad[0], bad[1]); err == nil || socket != nil {
			t.Errorf("listen %v: %v", bad, err)
		}
	}
}
