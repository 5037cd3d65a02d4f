package rig

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// target is a server that echoes, and says "end" when its client has ended its
// direction.
type target struct {
	net.Listener
	work     sync.WaitGroup
	accepted atomic.Int32
}

func newTarget(t *testing.T) *target {
	t.Helper()
	listener, err := net.Listen("tcp4", hostPort(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	s := &target{Listener: listener}
	s.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			s.work.Go(func() {
				defer conn.Close()
				if _, err := io.Copy(conn, conn); err == nil {
					io.WriteString(conn, "end")
				}
			})
		}
	})
	t.Cleanup(func() { listener.Close(); s.work.Wait() })
	return s
}

func newProxy(t *testing.T) *Upstream {
	t.Helper()
	u, _ := newProxyAndTarget(t)
	return u
}

func newProxyAndTarget(t *testing.T) (*Upstream, *target) {
	t.Helper()
	to := newTarget(t)
	u, err := NewUpstream(hostPort(loopback, 0), to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close) // before the target's
	return u, to
}

func dialProxy(t *testing.T, u *Upstream) *net.TCPConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp4", u.Address(), DefaultWait)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(DefaultWait))
	return conn.(*net.TCPConn)
}

// echoes sends a text and wants it back.
func echoes(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	reads(t, conn, text)
}

func reads(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v, want %q", got, err, text)
	}
}

// silent wants nothing to arrive for a while. It can only miss a fault, never see
// one that is none.
func silent(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	defer conn.SetReadDeadline(time.Now().Add(DefaultWait))
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v, want silence", n, err)
	}
}

func TestUpstreamCarries(t *testing.T) {
	u := newProxy(t)
	a, b := dialProxy(t, u), dialProxy(t, u)
	echoes(t, a, "one")
	echoes(t, b, "two")
	if u.Accepted() != 2 || u.Standing() != 2 {
		t.Errorf("accepted %d, standing %d", u.Accepted(), u.Standing())
	}
	// The end of one direction passes alone.
	a.CloseWrite()
	reads(t, a, "end")
	if n, err := a.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read %d, %v behind the end", n, err)
	}
	echoes(t, b, "three")
}

func TestUpstreamCut(t *testing.T) {
	u := newProxy(t)
	conn := dialProxy(t, u)
	echoes(t, conn, "one")
	u.Cut()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %v, want a reset", err)
	}
	echoes(t, dialProxy(t, u), "two")
}

func TestUpstreamRefuse(t *testing.T) {
	u := newProxy(t)
	conn := dialProxy(t, u)
	echoes(t, conn, "one")
	at := u.Address()
	u.Refuse()
	if _, err := net.DialTimeout("tcp4", at, DefaultWait); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v, want it refused", err)
	}
	echoes(t, conn, "two")
	if err := u.Resume(); err != nil {
		t.Fatal(err)
	}
	if u.Address() != at {
		t.Errorf("back at %s, was at %s", u.Address(), at)
	}
	echoes(t, dialProxy(t, u), "three")
}

func TestUpstreamStall(t *testing.T) {
	u, to := newProxyAndTarget(t)
	conn := dialProxy(t, u)
	echoes(t, conn, "one")
	u.Stall()
	io.WriteString(conn, "two")
	later := dialProxy(t, u)
	io.WriteString(later, "three")
	silent(t, conn)
	silent(t, later)
	if got := to.accepted.Load(); got != 1 {
		t.Errorf("%d connections have reached the target", got)
	}
	if err := u.Resume(); err != nil {
		t.Fatal(err)
	}
	reads(t, conn, "two")
	reads(t, later, "three")
}

func TestUpstreamOutageWhileStalled(t *testing.T) {
	u := newProxy(t)
	conn := dialProxy(t, u)
	echoes(t, conn, "one")
	u.Stall()
	io.WriteString(conn, "two")
	u.Outage()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %v, want a reset", err)
	}
	if err := u.Resume(); err != nil {
		t.Fatal(err)
	}
	echoes(t, dialProxy(t, u), "three")
}

func TestUpstreamWithoutTarget(t *testing.T) {
	p, err := claimPort()
	if err != nil {
		t.Fatal(err)
	}
	defer p.release()
	u, err := NewUpstream(hostPort(loopback, 0), p.address())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	conn, err := net.DialTimeout("tcp4", u.Address(), DefaultWait)
	if err == nil { // the reset has not overtaken the dial
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(DefaultWait))
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v, want a reset", err)
	}
}

func TestUpstreamClose(t *testing.T) {
	u := newProxy(t)
	conn := dialProxy(t, u)
	echoes(t, conn, "one")
	u.Stall()
	u.Close()
	if u.Standing() != 0 {
		t.Errorf("%d connections stand", u.Standing())
	}
	if err := u.Resume(); err == nil {
		t.Error("a closed proxy resumes")
	}
}

func TestPortsAreClaimed(t *testing.T) {
	taken := map[int]bool{}
	for range 20 {
		p, err := claimPort()
		if err != nil {
			t.Fatal(err)
		}
		defer p.release()
		if taken[p.number] || p.number < firstPort || p.number > lastPort {
			t.Errorf("port %d again, or out of range", p.number)
		}
		taken[p.number] = true
		if again := claimNumber(p.number); again != nil {
			again.release()
			t.Errorf("port %d can be claimed twice", p.number)
		}
	}
	stream, err := net.Listen("tcp4", hostPort(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	packets, err := net.ListenPacket("udp4", hostPort(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	for _, number := range []int{stream.Addr().(*net.TCPAddr).Port, packets.LocalAddr().(*net.UDPAddr).Port} {
		if p := claimNumber(number); p != nil {
			p.release()
			t.Errorf("port %d is in use and can be claimed", number)
		}
		claim, err := net.Listen("tcp4", hostPort(claimHost, number))
		if err != nil {
			t.Fatalf("the claim to port %d was kept: %v", number, err)
		}
		claim.Close()
	}
}
