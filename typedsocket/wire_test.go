package typedsocket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket/queue"
)

// wire is a peer that sees bytes: what it reads is kept.
type wire struct {
	conn net.Conn
	done chan []byte // everything read, once the connection has ended
}

const upgradeRequest = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"

// wired upgrades over a bare connection; wrap changes the server's end.
func (r *rig) wired(wrap func(net.Conn) net.Conn) (*wire, *Socket) {
	r.t.Helper()
	conn, err := r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { return c, wrap(s) })(context.Background(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	w := &wire{conn: conn, done: make(chan []byte, 1)}
	io.WriteString(conn, upgradeRequest)
	one, head := make([]byte, 1), []byte(nil)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if _, err := conn.Read(one); err != nil {
			r.t.Fatal(err)
		}
		head = append(head, one...)
	}
	go func() { all, _ := io.ReadAll(conn); w.done <- all }()
	return w, <-r.accepted
}

func (w *wire) send(opcode byte, payload []byte) {
	w.conn.Write(append(appendHeader(nil, finBit|opcode, len(payload), new([4]byte)), payload...))
}

func same(c net.Conn) net.Conn { return c }

// TestOneCloseFrameLeaves whoever closes: the library's own echo does not.
func TestOneCloseFrameLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, s := newRig(t, Config{Peer: "raw"}).wired(same)
		synctest.Wait()
		w.send(opClose, closePayload(CloseGoingAway, "bye"))
		wantEnd(t, s, CloseGoingAway, true)
		w.conn.Close()
		if got := <-w.done; !bytes.Equal(got, appendControl(nil, opClose, closePayload(CloseGoingAway, ""), nil)) {
			t.Fatalf("sent % x", got)
		}
	})
	bubble(t, func(t *testing.T) {
		w, s := newRig(t, Config{Peer: "raw"}).wired(same)
		synctest.Wait()
		s.Close(CloseRestart, "draining")
		synctest.Wait()
		w.send(opClose, closePayload(CloseRestart, ""))
		<-s.Done()
		w.conn.Close()
		if got := <-w.done; !bytes.Equal(got, appendControl(nil, opClose, closePayload(CloseRestart, "draining"), nil)) {
			t.Fatalf("sent % x", got)
		}
	})
}

// TestNothingIsServedWhileClosing: a request that crosses our close frame is
// nobody's any more.
func TestNothingIsServedWhileClosing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		served := 0
		w, s := newRig(t, Config{Peer: "raw", Handler: HandlerFunc(func(r *Request) { served++; r.Drop() })}).wired(same)
		s.Close(CloseRestart, "draining")
		synctest.Wait()
		w.send(opText, []byte(`{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`))
		synctest.Wait()
		w.send(opClose, closePayload(CloseRestart, ""))
		<-s.Done()
		w.conn.Close()
		<-w.done
		if served != 0 {
			t.Fatal("served")
		}
	})
}

// TestOnlyTheLastOfManyPingsIsAnswered (RFC 6455 §5.5.3): a flood of them
// holds no memory.
func TestOnlyTheLastOfManyPingsIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hold := make(chan struct{})
		w, s := newRig(t, Config{Peer: "raw"}).wired(func(c net.Conn) net.Conn { return &hookConn{Conn: c, before: func() { <-hold }} })
		synctest.Wait()
		if err := s.push("f", itemOf(newNull())); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the writer is held in the first frame
		for i := range 100 {
			w.send(opPing, []byte{byte(i)})
		}
		synctest.Wait()
		close(hold)
		synctest.Wait()
		w.conn.Close()
		<-s.Done()
		want := append(append(appendHeader(nil, finBit|opText, 4, nil), "null"...), appendControl(nil, opPong, []byte{99}, nil)...)
		if got := <-w.done; !bytes.Equal(got, want) {
			t.Fatalf("sent % x, want % x", got, want)
		}
	})
}

// hookConn calls functions around each large write of the server's end.
type hookConn struct {
	net.Conn
	before  func()      // before a write
	after   func()      // after one
	failed  func(error) // after one that failed
	handled bool
}

func (c *hookConn) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("HTTP/1.1 101")) {
		return c.Conn.Write(p)
	}
	if c.before != nil {
		c.before()
	}
	n, err := c.Conn.Write(p)
	if err != nil && c.failed != nil {
		c.failed(err)
	}
	if err == nil && c.after != nil && !c.handled {
		c.handled = true
		c.after()
	}
	return n, err
}

// TestCutBetweenTwoFragments: the first has left, and no other follows it; the
// close frame may, as any control frame between fragments (RFC 6455 §5.4).
func TestCutBetweenTwoFragments(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var s *Socket
		cut := make(chan struct{})
		hook := &hookConn{}
		hook.after = func() {
			go func() { defer close(cut); s.Cut(CloseCustodyEnded, "custody ended") }()
			<-s.Ending()
		}
		w, socket := newRig(t, Config{Peer: "raw"}).wired(func(c net.Conn) net.Conn { hook.Conn = c; return hook })
		s = socket
		synctest.Wait()
		b := newNull()
		b.Append(make([]byte, 1<<20))
		if err := s.push("f", itemOf(b)); err != nil {
			t.Fatal(err)
		}
		<-cut
		<-s.Done()
		w.conn.Close()
		want := appendHeader(nil, opText, writeStep, nil) // not the last
		want = append(append(want, "null"...), make([]byte, writeStep-4)...)
		want = appendControl(want, opClose, closePayload(CloseCustodyEnded, "custody ended"), nil)
		if got := <-w.done; !bytes.Equal(got, want) {
			t.Fatalf("%d bytes left, want %d", len(got), len(want))
		}
	})
}

// TestNothingFollowsATornFrame: where a write was interrupted inside a frame,
// not even a close frame makes sense any more.
func TestNothingFollowsATornFrame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var s *Socket
		hook := &hookConn{}
		hook.before = func() { hook.Conn = &tornConn{hook.Conn} }
		w, socket := newRig(t, Config{Peer: "raw"}).wired(func(c net.Conn) net.Conn { hook.Conn = c; return hook })
		s = socket
		synctest.Wait()
		b := newNull()
		b.Append(make([]byte, 20<<10))
		if err := s.push("f", itemOf(b)); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, s, closeAbnormal, true)
		w.conn.Close()
		if got := <-w.done; len(got) != 1000 || got[999] != 0 {
			t.Fatalf("%d bytes left", len(got))
		}
	})
}

// tornConn takes 1,000 bytes and fails.
type tornConn struct{ net.Conn }

func (c *tornConn) Write(p []byte) (int, error) {
	n, _ := c.Conn.Write(p[:1000])
	return n, os.ErrDeadlineExceeded
}

// TestAMessageThatNeverEndsIsNotServed: the connection ends inside a frame
// that could be read as whole, or between two fragments.
func TestAMessageThatNeverEndsIsNotServed(t *testing.T) {
	text := []byte(`{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
	padded := append(append([]byte{}, text...), bytes.Repeat([]byte(" "), 4096-len(text))...)
	for name, sent := range map[string][]byte{
		"in a frame":        append(appendHeader(nil, finBit|opText, 8192, new([4]byte)), padded...),
		"between fragments": append(appendHeader(nil, opText, len(text), new([4]byte)), text...),
	} {
		bubble(t, func(t *testing.T) {
			w, s := newRig(t, Config{Peer: "raw", Handler: HandlerFunc(func(r *Request) { t.Errorf("%s: served", name); r.Drop() })}).wired(same)
			w.conn.Write(sent)
			synctest.Wait()
			w.conn.Close()
			wantEnd(t, s, closeAbnormal, true)
			<-w.done
		})
	}
}

// TestAPongGoesBetweenTheFragmentsOfOneLargeFrame: at 128 KiB/s the frame
// takes two minutes, the pong no longer than two fragments.
func TestAPongGoesBetweenTheFragmentsOfOneLargeFrame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, Config{Peer: "slow"})
		peer := rawOver(t, r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { return &slowConn{c, 128 << 10}, s }), func() {})
		s := <-r.accepted
		b := newNull()
		b.Reset()
		content := bytes.Repeat([]byte("0123456789abcdef"), 15<<16)
		b.Append(content)
		if err := s.push("", itemOf(b)); err != nil {
			t.Fatal(err)
		}
		whole := make(chan []byte, 1)
		go func() {
			_, p, _ := peer.Read(context.Background())
			whole <- p
			peer.Read(context.Background())
		}()
		for range 10 {
			time.Sleep(10 * time.Second)
			start := time.Now()
			if err := peer.Ping(context.Background()); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d > 1200*time.Millisecond {
				t.Fatalf("a pong took %s", d)
			}
		}
		if got := <-whole; !bytes.Equal(got, content) {
			t.Fatalf("%d bytes arrived changed", len(got))
		}
		peer.CloseNow()
		<-s.Done()
	})
}

// TestCutWaitsForTheWriteInProgress: it returns when the connection has let go
// of the write, not before.
func TestCutWaitsForTheWriteInProgress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hook := &hookConn{failed: func(err error) {
			if !os.IsTimeout(err) {
				t.Errorf("interrupted by %v", err)
			}
			time.Sleep(time.Second)
		}}
		r := newRig(t, Config{Peer: "raw"})
		conn, err := r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { hook.Conn = s; return c, hook })(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, upgradeRequest)
		io.ReadAtLeast(conn, make([]byte, 4096), 100) // the answer, and nothing after it
		s := <-r.accepted
		if err := s.push("f", itemOf(newNull())); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		start := time.Now()
		s.Cut(CloseCustodyEnded, "custody ended")
		if d := time.Since(start); d != time.Second {
			t.Fatalf("Cut returned after %s", d)
		}
		conn.Close()
		<-s.Done()
	})
}

// TestCutMayBeCalledFromAnyCallback: it waits for nobody who waits for it.
func TestCutMayBeCalledFromAnyCallback(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, up := newRig(t, Config{Peer: "cloudly"}).wired(same)
		node, down := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			r.Forward(up, Forward{Method: "m", Timeout: time.Hour, Failed: func(error) (string, []byte) {
				up.Cut(CloseCustodyEnded, "custody ended")
				return "x", []byte("{}")
			}})
		})}).raw()
		if err := up.push("f", queue.Item{Buf: newNull(), Sent: func(bool) { up.Stats() }}); err != nil {
			t.Fatal(err)
		}
		go readAll(node)
		write(t, node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		wantEnd(t, up, CloseSilent, false)
		w.conn.Close()
		node.CloseNow()
		<-w.done
		<-down.Done()
	})
	bubble(t, func(t *testing.T) {
		w, s := newRig(t, Config{Peer: "raw"}).wired(same)
		if err := s.push("f", queue.Item{Buf: newNull(), Sent: func(bool) { s.Cut(CloseCustodyEnded, "custody ended") }}); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, s, CloseCustodyEnded, false)
		w.conn.Close()
		<-w.done
	})
}

// TestCutOfADeadPeerInTheMiddleOfALargeFrame: the verdict falls between two
// fragments, and a callback of it cuts.
func TestCutOfADeadPeerInTheMiddleOfALargeFrame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, Config{Peer: "cloudly", Limits: Limits{Own: 32 << 20}})
		conn, err := r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { return &slowConn{c, 64 << 10}, s })(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, upgradeRequest)
		go io.Copy(io.Discard, conn) // reads, and never answers a ping
		up := <-r.accepted
		node, down := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			r.Forward(up, Forward{Method: "m", Timeout: time.Hour, Failed: func(error) (string, []byte) {
				up.Cut(CloseCustodyEnded, "custody ended")
				return "x", []byte("{}")
			}})
		})}).raw()
		go readAll(node)
		write(t, node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		b := newNull()
		b.Append(make([]byte, 15<<20))
		if err := up.push("", itemOf(b)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		wantEnd(t, up, CloseSilent, false)
		if d := time.Since(start); d < 55*time.Second || d > 85*time.Second {
			t.Fatalf("ended after %s", d)
		}
		conn.Close()
		node.CloseNow()
		<-down.Done()
	})
}

func TestForwardToNoSocketIsRefusedLikeToAnEndedOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		node, down := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(nil, Forward{Method: "m"}); errors.Is(err, ErrClosed) {
				r.Refuse("relay-not-ready: no session", nil)
			}
		})}).raw()
		write(t, node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		if got := read(t, node); !bytes.Contains([]byte(got), []byte("relay-not-ready: no session")) {
			t.Fatal(got)
		}
		node.CloseNow()
		<-down.Done()
	})
}
