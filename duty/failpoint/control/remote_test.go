package control

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// bench is a program with its points, attached to a test.
type bench struct {
	*Remote
	t      *testing.T
	points *Points
	ctx    context.Context
	path   string
}

func newBench(t *testing.T) *bench {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	b := &bench{t: t, ctx: ctx, path: filepath.Join(t.TempDir(), "s")}
	remote, err := Listen(b.path)
	if err != nil {
		t.Fatal(err)
	}
	b.Remote = remote
	t.Cleanup(func() { remote.Close() })
	b.attach()
	return b
}

// attach starts a program, and returns what ends it.
func (b *bench) attach() (end func()) {
	b.t.Helper()
	b.points = New("a", "c")
	conn, err := net.Dial("unix", b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	over := make(chan struct{})
	go func(p *Points) { defer close(over); p.Serve(conn) }(b.points)
	end = func() { conn.Close(); <-over }
	b.t.Cleanup(end)
	if err := b.Attached(b.ctx); err != nil {
		b.t.Fatal(err)
	}
	return end
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestRemote(t *testing.T) {
	b := newBench(t)
	b.must(b.Hold("a", 2, MaximumWait))
	for range 2 {
		go b.points.Reach("a")
	}
	b.must(b.Reached(b.ctx, "a", 2))
	if n := b.Times("a"); n != 2 {
		t.Errorf("reached %d times", n)
	}
	b.must(b.Release("a"))
	b.must(b.Clock(-time.Hour))
	if now := time.Now(); !b.points.Now(now).Equal(now.Add(-time.Hour)) {
		t.Error("the clock was not set")
	}
	if err := b.Hold("x", 1, time.Second); err == nil || !strings.Contains(err.Error(), `no failpoint "x"`) {
		t.Errorf("%v", err)
	}
	if err := b.Hold("a", 1, time.Hour); err == nil {
		t.Error("a hold without an end was taken")
	}
	over, cancel := context.WithCancel(b.ctx)
	cancel()
	if err := b.Reached(over, "a", 3); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A program that is started again attaches anew, and begins with nothing.
func TestRemoteTakesTheNextProgram(t *testing.T) {
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "s")}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	b.ctx = ctx
	remote, err := Listen(b.path)
	b.must(err)
	b.Remote = remote
	defer remote.Close()
	end := b.attach()
	b.must(b.Hold("a", 1, MaximumWait))
	go b.points.Reach("a")
	b.must(b.Reached(ctx, "a", 1))
	end()
	b.must(b.wait(ctx, "the end", func() bool { return b.program == nil }))
	if err := b.Release("a"); err == nil || !strings.Contains(err.Error(), "no program is attached") {
		t.Errorf("%v", err)
	}
	b.attach()
	if n := b.Times("a"); n != 0 {
		t.Errorf("the next one has reached it %d times", n)
	}
	b.must(b.Clock(time.Hour))
}

// An answer that comes too late is none to the next question: the program is let go.
func TestRemoteTakesNoLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		program, test := net.Pipe()
		r := &Remote{reached: map[string]int{}, changed: make(chan struct{})}
		r.work.Go(func() { r.attend(test) })
		b := &bench{t: t, Remote: r}
		b.must(b.Attached(t.Context()))
		line := make([]byte, maximumLine)
		says := make(chan error, 1)
		go func() { // it answers the first question late, with a refusal, and others at once
			for n := 0; ; n++ {
				if _, err := program.Read(line); err != nil {
					says <- err
					return
				}
				answer := okWord
				if n == 0 {
					time.Sleep(answerWait + time.Second)
					answer = errorWord + " of the first question"
				}
				writeLine(program, answer)
			}
		}()
		if err := r.Hold("a", 1, time.Second); err == nil || !strings.Contains(err.Error(), "no answer within 30s") {
			t.Errorf("the first question: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := r.Release("a"); err == nil || !strings.Contains(err.Error(), "no program is attached") {
			t.Errorf("the second: %v", err)
		}
		program.Close()
		r.work.Wait()
		if err := <-says; err == nil {
			t.Error("the program was not let go")
		}
	})
}

// tcp returns the program's end of a connection "c", and its peer's.
func (b *bench) tcp() (own, peer net.Conn) {
	b.t.Helper()
	inner, err := net.Listen("tcp4", "127.0.0.1:0")
	b.must(err)
	l := b.points.Listener("c", inner)
	defer l.Close()
	peer, err = net.Dial("tcp4", l.Addr().String())
	b.must(err)
	b.t.Cleanup(func() { peer.Close() })
	own, err = l.Accept()
	b.must(err)
	b.t.Cleanup(func() { own.Close() })
	return own, peer
}

// A connection that is cut gives its peer what was written before, and a reset. Its
// owner meets the same in both directions, and so does who waits already.
func TestCut(t *testing.T) {
	b := newBench(t)
	own, peer := b.tcp()
	reading := make(chan error, 1)
	go func() { _, err := own.Read(make([]byte, 1)); reading <- err }()
	b.must(b.Cut("c", 0, 2))
	b.must(b.Mend("c"))
	if n, err := own.Write([]byte("xyz")); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	b.must(b.Cut("c", 7, 5))
	if n, err := own.Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	taken := make([]byte, 8)
	written := make(chan error, 1)
	go func() {
		n, err := own.Write([]byte("defg"))
		if n != 2 {
			t.Errorf("%d bytes were written", n)
		}
		written <- err
	}()
	n, err := io.ReadFull(peer, taken)
	// A reset may throw away what was not read yet.
	if err == nil && string(taken) != "xyzabcde" || !strings.HasPrefix("xyzabcde", string(taken[:n])) {
		t.Errorf("the peer took %q, %v", taken[:n], err)
	}
	if err == nil {
		_, err = peer.Read(taken)
	}
	for what, err := range map[string]error{"the write": <-written, "a read that waited": <-reading, "the peer": err} {
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s met %v", what, err)
		}
	}
	if _, err := own.Read(taken); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a read meets %v", err)
	}
	if err := b.Cut("c", Every, 0); err == nil {
		t.Error("a connection that is gone was found")
	}
}

// A connection is the one of a number, or each is meant.
func TestWhich(t *testing.T) {
	b := newBench(t)
	var owns []net.Conn
	for range 3 {
		own, _ := b.tcp()
		owns = append(owns, own)
	}
	wantCut := func(want ...bool) {
		t.Helper()
		for i, own := range owns {
			own.SetReadDeadline(time.Now())
			_, err := own.Read(make([]byte, 1))
			if got := errors.Is(err, syscall.ECONNRESET); got != want[i] {
				t.Errorf("connection %d: %v", i, err)
			}
		}
	}
	b.must(b.Cut("c", 4, 0))
	wantCut(false, true, false)
	b.must(b.Cut("c", 1, 0)) // of the two that are left
	wantCut(false, true, true)
	b.must(b.Stall("c", Every, time.Millisecond))
	b.must(b.Cut("c", Every, 0))
	wantCut(true, true, true)
}
