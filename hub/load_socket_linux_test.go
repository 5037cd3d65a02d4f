package hub

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/duty"
)

// flood sends datagrams of 1,000 bytes to an address.
func flood(t *testing.T, to net.Addr, datagrams int) {
	t.Helper()
	from, err := net.Dial("udp4", to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for range datagrams {
		if _, err := from.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll takes what waits in a socket.
func readAll(t *testing.T, socket net.PacketConn) (datagrams int) {
	t.Helper()
	for {
		socket.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, _, err := socket.ReadFrom(make([]byte, 2000)); errors.Is(err, os.ErrDeadlineExceeded) {
			return datagrams
		} else if err != nil {
			t.Fatal(err)
		}
		datagrams++
	}
}

// Each datagram that the kernel drops because the socket's buffer is full is counted
// once, also when the kernel's counter begins anew, and what was counted stays when the
// socket is closed.
func TestTheKernelsDropsAreCounted(t *testing.T) {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	const small = 16 << 10
	if err := socket.SetReadBuffer(small); err != nil {
		t.Fatal(err)
	}
	var counted duty.Counter
	var w socketWatch
	if w.look(&counted) != nil {
		t.Error("a socket that is not watched is shown")
	}
	w.watch(socket)
	if s := w.look(&counted); s == nil || s.DroppedPackets != 0 || s.ReceiveBuffer != 2*small {
		t.Fatalf("at first: %+v", s)
	}
	const sent = 200
	flood(t, socket.LocalAddr(), sent)
	want := uint64(sent - readAll(t, socket))
	if s := w.look(&counted); s.DroppedPackets != want || counted.Value() != want || want == 0 || !s.dropping {
		t.Errorf("%d were dropped; shown %+v, counted %d", want, s, counted.Value())
	}
	w.mu.Lock()
	w.last.dropped = ^uint32(0) // the kernel's counter was there, and has come to want since
	w.mu.Unlock()
	want += want + 1
	if s := w.look(&counted); s.DroppedPackets != want || counted.Value() != want {
		t.Errorf("behind the end of the kernel's counter: shown %+v, counted %d, want %d", s, counted.Value(), want)
	}
	socket.Close()
	if s := w.look(&counted); s == nil || s.DroppedPackets != want || counted.Value() != want {
		t.Errorf("of a closed socket: %+v", s)
	}
}

// The hub looks at its own socket by itself, every second.
func TestWhatTheKernelDropsOfTheHubIsShown(t *testing.T) {
	r := newLoopbackRig(t)
	if s := r.status().Socket; s == nil || s.DroppedPackets != 0 || s.WantedBuffer != wantedBuffer {
		t.Fatalf("at first: %+v", s)
	}
	r.Hub.mu.Lock()
	socket := r.socket.(*net.UDPConn)
	r.Hub.mu.Unlock()
	if err := socket.SetReadBuffer(1); err != nil { // the least that the kernel has
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); r.metrics.socketDropped.Value() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was counted")
		}
		flood(t, socket.LocalAddr(), 100)
	}
	if s := r.status().Socket; s.DroppedPackets != r.metrics.socketDropped.Value() {
		t.Errorf("counted %d, shown %+v", r.metrics.socketDropped.Value(), s)
	}
}

// A buffer that the kernel made smaller than was asked for is advice with the setting
// that mends it, never a reason not to be ready.
func TestSmallBuffersAreAdvice(t *testing.T) {
	r := newLoopbackRig(t)
	r.Hub.mu.Lock()
	socket := r.socket.(*net.UDPConn)
	r.Hub.mu.Unlock()
	const large, small = 8 << 20, 100 << 10
	for _, test := range []struct {
		receive, send int
		want          string
	}{
		{large, large, "ok"},
		{small, large, "socket-buffer-small bytes=204800 limit=7340032 count=0 sysctl -w net.core.rmem_max=7340032"},
		{large, small, "socket-buffer-small bytes=204800 limit=7340032 count=0 sysctl -w net.core.wmem_max=7340032"},
		{small, small, "socket-buffer-small bytes=204800 limit=7340032 count=0 sysctl -w net.core.rmem_max=7340032 net.core.wmem_max=7340032"},
	} {
		if err := errors.Join(socket.SetReadBuffer(test.receive), socket.SetWriteBuffer(test.send)); err != nil {
			t.Fatal(err)
		}
		if s := r.status().Socket; test.want == "ok" && (s.ReceiveBuffer < wantedBuffer || s.SendBuffer < wantedBuffer) {
			t.Logf("this machine's limits are too low for the case where all is well: %+v", s)
			continue
		}
		if got := adviceOf(t, r); got != test.want {
			t.Errorf("%d and %d bytes: %q, want %q", test.receive, test.send, got, test.want)
		}
	}
}

// Drops are advice for a minute, also where the buffers are as large as can be.
func TestDropsAreAdviceForAWhile(t *testing.T) {
	const dropped = 7
	for _, test := range []struct {
		ago  time.Duration
		want string
	}{{0, "socket-overrun"}, {recently - time.Second, "socket-overrun"}, {recently, ""}} {
		w := socketWatch{conn: closedConn(t), known: true, dropped: dropped, at: time.Now().Add(-test.ago),
			last: kernelSocket{receive: wantedBuffer, send: wantedBuffer, dropped: dropped}}
		var counted duty.Counter
		check := duty.Check{State: duty.OK}
		w.look(&counted).judge(&check)
		if check.Reason != test.want || (check.State == duty.Failing) != (test.want != "") {
			t.Errorf("%v ago: %v %s", test.ago, check.State, check.Reason)
		}
	}
}

// closedConn is a socket that says nothing any more.
func closedConn(t *testing.T) syscall.RawConn {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := socket.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	socket.Close()
	return conn
}

// adviceOf is what the check of the socket says.
func adviceOf(t *testing.T, r *rig) string {
	t.Helper()
	for _, c := range r.Checks(r.wall()) {
		if c.Name != "hub-socket" {
			continue
		}
		if !c.Advice {
			t.Error("the check is no advice")
		}
		if c.State == duty.OK {
			return "ok"
		}
		text := c.Reason
		for _, f := range c.Facts {
			text += fmt.Sprintf(" %s=%s", f.Key(), f)
		}
		if command, ok := strings.CutPrefix(commandIn(string(c.Hint)), "Run "); ok {
			text += " " + command
		}
		return text
	}
	t.Fatal("there is no check of the socket")
	return ""
}

// commandIn is what a hint says to run.
func commandIn(hint string) string {
	at := strings.Index(hint, "Run ")
	end := strings.Index(hint, " on the host")
	if at < 0 || end < at {
		return ""
	}
	return hint[at:end]
}
