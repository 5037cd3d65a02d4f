package typedsocket

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"serve.zone/relay/typedsocket/queue"
)

// closeSeen reads until the close frame and returns it.
func closeSeen(t testing.TB, peer *websocket.Conn) websocket.CloseError {
	t.Helper()
	for {
		_, _, err := peer.Read(context.Background())
		var closed websocket.CloseError
		if errors.As(err, &closed) {
			return closed
		}
		if err != nil {
			t.Fatalf("no close frame: %v", err)
		}
	}
}

// R03: each malformed text closes its socket with 1007 and the rule, or, where sockets
// are kept, is dropped and counted and the next request is served.
func TestR03_MalformedTextEndsTheSocketOrIsDropped(t *testing.T) {
	// Each is refused with its rule; the process stays up and counts it.
	malformed := []string{
		`not json`, `{"a":1} {}`, "{\"a\":\"\xff\"}", strings.Repeat(`{"a":`, 65) + `1` + strings.Repeat(`}`, 65),
		`{"method":"a","method":"b"}`, `{"method":"a","\u006dethod":"b"}`, `{"__proto__":1}`, `{"request":{"x":1,"x":2}}`,
		`{"method":"\ud800"}`, ``, `[]`, `"text"`, `{"a":01}`,
	}
	for _, text := range malformed {
		bubble(t, func(t *testing.T) {
			peer, s := newRig(t, Config{Peer: "raw"}).raw()
			write(t, peer, text)
			if closed := closeSeen(t, peer); closed.Code != 1007 || !strings.HasPrefix(closed.Reason, "text message refused: ") {
				t.Errorf("%q: closed with %d %q", text, closed.Code, closed.Reason)
			}
			wantEnd(t, s, CloseInvalidData, false)
		})
		bubble(t, func(t *testing.T) {
			peer, s := newRig(t, Config{Peer: "raw", KeepMalformed: true, Handler: handlers{"echo": echo}}).raw()
			write(t, peer, text)
			write(t, peer, `{"method":"echo","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
			if got := read(t, peer); !strings.Contains(got, `"response":{}`) || s.Stats().Malformed != 1 {
				t.Errorf("%q: %s %+v", text, got, s.Stats())
			}
			peer.CloseNow()
			<-s.Done()
		})
	}
}

// B175, R93: a message above the limit ends that socket only, with the limit in its
// reason, also when it is announced in a 64-bit length.
func TestB175_ALargeMessageEndsTheSocketWithItsLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, Config{Peer: "raw", Limits: Limits{Frame: 64 << 10}, Handler: handlers{"echo": echo}})
		peer, s := r.raw()
		other, s2 := r.raw()
		body := strings.Repeat("x", 64<<10)
		go peer.Write(context.Background(), websocket.MessageText, []byte(`{"a":"`+body+`"}`))
		if closed := closeSeen(t, peer); closed.Code != 1009 || closed.Reason != "message larger than 65536 bytes" {
			t.Fatalf("closed with %d %q", closed.Code, closed.Reason)
		}
		wantEnd(t, s, CloseTooBig, false)
		write(t, other, `{"method":"echo","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		read(t, other)
		other.CloseNow()
		<-s2.Done()
	})
}

// R87: a maximal chunk passes, and a request of 17 MiB is refused by name where the
// socket matters, which goes on.
func TestR87_ALargeRequestIsRefusedByNameWhereTheSocketMatters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", Limits: Limits{Frame: 16 << 20, Close: 24 << 20}, Handler: handlers{"echo": func(r *Request) { r.Answer([]byte(`{}`)) }}})
		maximal := `{"chunk":"` + strings.Repeat("A", 699_052) + `"}`
		if got := call(t, c, "echo", maximal); got != `{}` {
			t.Fatal(got)
		}
		_, err := c.Call(context.Background(), "echo", []byte(`{"chunk":"`+strings.Repeat("A", 17<<20)+`"}`), CallOptions{})
		var remote *RemoteError
		if !errors.As(err, &remote) || string(remote.Data) != `{"code":"frame-too-large"}` || !strings.Contains(remote.Text, "limit of 16777216") {
			t.Fatalf("%v %+v", err, remote)
		}
		if call(t, c, "echo", `{}`); s.Stats().TooBig != 1 {
			t.Fatalf("%+v", s.Stats())
		}
	})
}

func TestALargeAnswerFailsItsCallAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := pair(t, Config{Peer: "server", Limits: Limits{Frame: 1 << 20, Close: 2 << 20}}, Config{Peer: "client", Handler: handlers{"echo": echo,
			"large": func(r *Request) { r.Answer([]byte(`"` + strings.Repeat("x", 1<<20) + `"`)) }}})
		_, err := c.Call(context.Background(), "large", []byte(`{}`), CallOptions{})
		var big *TooBigError
		if !errors.As(err, &big) || big.Limit != 1<<20 {
			t.Fatalf("%v", err)
		}
		call(t, c, "echo", `{}`)
	})
}

func TestBinaryMessagesAreUnsupportedWithoutStreams(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw"}).raw()
		go peer.Write(context.Background(), websocket.MessageBinary, []byte(`{"method":"echo"}`))
		if closed := closeSeen(t, peer); closed.Code != 1003 {
			t.Fatalf("closed with %d", closed.Code)
		}
		wantEnd(t, s, CloseUnsupported, false)
	})
}

func TestBinaryMessagesThatAreNoStreamFrameAreCountedAndDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw", Streams: true, Handler: handlers{"echo": echo}}).raw()
		for _, p := range [][]byte{[]byte(`{"method":"echo"}`), {1}, {}} {
			if err := peer.Write(context.Background(), websocket.MessageBinary, p); err != nil {
				t.Fatal(err)
			}
		}
		write(t, peer, `{"method":"echo","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		read(t, peer)
		if s.Stats().BinaryDropped != 3 || s.Err() != nil {
			t.Fatalf("%+v %v", s.Stats(), s.Err())
		}
		peer.CloseNow()
		<-s.Done()
	})
}

func TestCloseFlushesThenSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw"}).raw()
		for range 100 {
			if err := s.push("f", itemOf(newNull())); err != nil {
				t.Fatal(err)
			}
		}
		s.Close(CloseRestart, "draining")
		n := 0
		for ; ; n++ {
			_, _, err := peer.Read(context.Background())
			var closed websocket.CloseError
			if errors.As(err, &closed) {
				if closed.Code != 1012 || closed.Reason != "draining" {
					t.Fatalf("%v", closed)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n != 100 {
			t.Fatalf("%d of 100 queued frames left before the close frame", n)
		}
		wantEnd(t, s, CloseRestart, false)
		if _, err := s.Call(context.Background(), "m", []byte(`{}`), CallOptions{}); !errors.Is(err, ErrClosed) {
			t.Fatalf("a call on an ended socket: %v", err)
		}
	})
}

// B026: closing a socket ends within its bound although the peer never reads.
func TestB026_CloseIsBoundedForAPeerThatNeverReads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw"}).raw()
		if err := s.push("f", itemOf(newNull())); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		s.Close(CloseNormal, "")
		<-s.Done()
		if d := time.Since(start); d > flushWait+2*closeWait {
			t.Fatalf("took %s", d)
		}
		_ = peer
	})
}

// stuckConn is a connection whose Close does not end its Read.
type stuckConn struct {
	net.Conn
	free chan struct{}
}

func (c *stuckConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		<-c.free
	}
	return n, err
}

// B026: closing a socket ends within its bound although a read on the connection never
// returns.
func TestB026_CloseIsBoundedForAConnectionThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		free := make(chan struct{})
		c, s := newRig(t, Config{Peer: "client"}).connect(Config{Peer: "server"}, func(c, s net.Conn) (net.Conn, net.Conn) {
			return &stuckConn{c, free}, s
		})
		s.link.Conn.Close() // without a close frame
		start := time.Now()
		<-s.Done()
		c.Close(CloseNormal, "")
		<-c.Done()
		if d := time.Since(start); d > 3*closeWait {
			t.Fatalf("took %s", d)
		}
		close(free)
	})
}

// TestCutLetsNothingQueuedLeave cuts while a frame is half written and more
// wait: not one byte of them arrives after Cut has returned.
func TestCutLetsNothingQueuedLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *gate
		r := newRig(t, Config{Peer: "raw"})
		dial := r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { g = newGate(c); return g, s })
		peer := rawOver(t, dial, func() {})
		s := <-r.accepted
		g.shut()
		left := 0
		for range 3 {
			b := newNull()
			b.Append(make([]byte, 1<<20))
			if err := s.push("f", queue.Item{Buf: b, Sent: func(ok bool) {
				if ok {
					left++
				}
			}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // the writer is stuck in the first frame now
		start := time.Now()
		s.Cut(CloseCustodyEnded, "custody ended")
		if time.Since(start) != 0 || left != 0 {
			t.Fatalf("Cut took %s and %d frames left", time.Since(start), left)
		}
		g.open()
		n, err := readAll(peer)
		if err == nil || n != 0 {
			t.Fatalf("%d whole messages arrived, %v", n, err)
		}
		wantEnd(t, s, CloseCustodyEnded, false)
	})
}

func readAll(peer *websocket.Conn) (n int, err error) {
	for {
		if _, _, err = peer.Read(context.Background()); err != nil {
			return n, err
		}
		n++
	}
}

func TestCutOnAnIdleSocketStillSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw"}).raw()
		synctest.Wait()
		s.Cut(CloseCustodyEnded, "custody ended")
		if closed := closeSeen(t, peer); closed.Code != 4002 || closed.Reason != "custody ended" {
			t.Fatalf("%v", closed)
		}
		<-s.Done()
	})
}

// B046: a peer that reads too slowly for its answers is cut, and the reason names the
// limit and how much was held.
func TestB046_ASlowReaderIsCutWithReasonLimitAndValue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *gate
		r := newRig(t, Config{Peer: "raw", Limits: Limits{Own: 256 << 10}, Handler: handlers{"echo": echo}})
		dial := r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { g = newGate(c); return g, s })
		peer := rawOver(t, dial, func() {})
		s := <-r.accepted
		g.shut()
		body := strings.Repeat("x", 32<<10)
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			for ; ; time.Sleep(time.Millisecond) {
				if peer.Write(context.Background(), websocket.MessageText, []byte(`{"method":"echo","request":{"b":"`+body+`"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)) != nil {
					return
				}
			}
		}()
		<-s.Ending()
		g.open()
		end := wantEnd(t, s, CloseSlow, false)
		if !strings.Contains(end.Why, "limit of 262144") || !strings.Contains(end.Why, "hold ") {
			t.Fatalf("reason %q", end.Why)
		}
		peer.CloseNow()
		<-wrote
	})
}

// B044, B038: the queue for a peer that does not read is bounded, what is beyond it is
// refused at once, and the write itself is given up in time.
func TestB044_AQueueForAPeerThatDoesNotReadIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *gate
		r := newRig(t, Config{Peer: "raw", Limits: Limits{Flow: 1 << 20, Flows: 3 << 20}})
		dial := r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { g = newGate(c); return g, s })
		peer := rawOver(t, dial, func() {})
		s := <-r.accepted
		g.shut()
		start := time.Now()
		var full *queue.FullError
		for _, flow := range []string{"a", "b", "c", "d"} {
			for {
				b := newNull()
				b.Append(make([]byte, 100<<10))
				err := s.push(flow, itemOf(b))
				if err != nil {
					b.Release()
					if !errors.As(err, &full) {
						t.Fatal(err)
					}
					break
				}
			}
		}
		if st := s.Stats(); st.QueuedFlow > 3<<20 || st.QueueFull != 4 || time.Since(start) != 0 {
			t.Fatalf("%+v after %s", st, time.Since(start))
		}
		// The write itself is given up after 60 s without progress.
		<-s.Ending()
		if d := time.Since(start); d < 55*time.Second || d > 81*time.Second {
			t.Fatalf("given up after %s", d)
		}
		g.open()
		peer.CloseNow()
		<-s.Done()
	})
}

// B176: a close reason that is too long is cut to 123 bytes at most, between two
// characters.
func TestB176_ALongReasonIsCutOnARuneEdge(t *testing.T) {
	for _, reason := range []string{strings.Repeat("a", 200), strings.Repeat("é", 100), strings.Repeat("€", 41) + "€", "x" + strings.Repeat("😀", 40)} {
		got := cutReason(reason)
		if len(got) > 123 || len(got) < 120 || !utf8.ValidString(got) || !strings.HasPrefix(reason, got) {
			t.Errorf("%q became %q of %d bytes", reason, got, len(got))
		}
	}
	if cutReason("short") != "short" {
		t.Error("a short reason changed")
	}
}

func TestTheCloseCodeTableIsComplete(t *testing.T) {
	for _, c := range []CloseCode{CloseNormal, CloseGoingAway, CloseProtocol, CloseUnsupported, CloseInvalidData, ClosePolicy, CloseTooBig,
		CloseInternal, CloseRestart, CloseOverloaded, CloseSuperseded, CloseCustodyEnded, CloseUnregistered, CloseRegisterAgain, CloseSilent, CloseSlow} {
		if strings.HasPrefix(c.Meaning(), "close code") {
			t.Errorf("%d has no meaning", c)
		}
	}
	if got := CloseCode(3999).Meaning(); got != "close code 3999" {
		t.Error(got)
	}
}

// B166: a frame header with any length, the top bit included, ends the socket or is
// waited for; nothing crashes or allocates.
func TestB166_FrameLengthsOfEveryForm(t *testing.T) {
	for _, header := range [][]byte{
		append([]byte{0x81, 0xff}, binary.BigEndian.AppendUint64(nil, 1<<63)...),
		append([]byte{0x81, 0xff}, binary.BigEndian.AppendUint64(nil, 1<<62)...),
		append([]byte{0x81, 0xff}, binary.BigEndian.AppendUint64(nil, ^uint64(0))...),
		{0x81, 0xfe, 0xff, 0xff}, {0x89, 0xfe, 0x00, 0x7e}, {0x09, 0x80, 0, 0, 0, 0}, {0xc1, 0x80, 0, 0, 0, 0}, {0x83, 0x80, 0, 0, 0, 0},
		{0x81, 0x05, 'h', 'e', 'l', 'l', 'o'}, {0x80, 0x80, 0, 0, 0, 0}, {0x88, 0x81, 0, 0, 0, 0, 7},
	} {
		bubble(t, func(t *testing.T) {
			r := newRig(t, Config{Peer: "raw"})
			conn, err := r.listener.dial(nil)(context.Background(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			go io.Copy(io.Discard, conn)
			io.WriteString(conn, upgradeRequest)
			s := <-r.accepted
			conn.Write(header)
			conn.Write(bytes.Repeat([]byte{0}, 4))
			time.Sleep(time.Second)
			conn.Close()
			<-s.Done()
			if s.Err() == nil || strings.Contains(s.Err().Error(), "hello") {
				t.Errorf("% x: %v", header, s.Err())
			}
		})
	}
}

func TestDialNamesWhatWentWrong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		_, err := Connect(context.Background(), Dial{URL: "ws://relay/", Config: Config{Peer: "cloudly"},
			Net: func(context.Context, string, string) (net.Conn, error) { return nil, refused }})
		if !errors.Is(err, refused) || !strings.HasPrefix(err.Error(), "dial cloudly: ") {
			t.Fatalf("%v", err)
		}
		// A server that accepts and says nothing is given up after 15 s.
		start := time.Now()
		_, err = Connect(context.Background(), Dial{URL: "ws://relay/", Config: Config{Peer: "cloudly"},
			Net: func(context.Context, string, string) (net.Conn, error) {
				c, s := net.Pipe()
				go io.Copy(io.Discard, s)
				return c, nil
			}})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != handshakeWait {
			t.Fatalf("%v after %s", err, time.Since(start))
		}
	})
}
