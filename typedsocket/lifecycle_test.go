package typedsocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket/queue"
	"serve.zone/relay/typedsocket/stream"
)

// TestAForwardEndsWithItsSource: a node that comes and goes leaves nothing
// waiting on the socket to the control plane.
func TestAForwardEndsWithItsSource(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := make(chan error, 10)
		cloud, up := newRig(t, Config{Peer: "cloudly"}).raw()
		go readAll(cloud)
		nodes := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(up, Forward{Method: "m", Ended: func(err error) { ended <- err }}); err != nil {
				t.Error(err)
			}
		})})
		for range 5 {
			node, s := nodes.raw()
			for i := range 2 {
				write(t, node, fmt.Sprintf(`{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c%d","phase":"request"}}`, i))
			}
			synctest.Wait()
			if n := up.Stats().Pending; n != 2 {
				t.Fatalf("%d wait", n)
			}
			node.CloseNow()
			<-s.Done()
			if n := up.Stats().Pending; n != 0 {
				t.Fatalf("%d still wait after the node has gone", n)
			}
			for range 2 {
				if err := <-ended; !errors.Is(err, ErrClosed) {
					t.Fatalf("ended with %v", err)
				}
			}
		}
		cloud.CloseNow()
		<-up.Done()
	})
}

// TestCallbacksNeverRunInsideAMethod: the caller may hold the lock they take.
func TestCallbacksNeverRunInsideAMethod(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var table sync.Mutex
		over := make(chan error, 1)
		cloud, up := newRig(t, Config{Peer: "cloudly"}).raw()
		node, down := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			r.Forward(up, Forward{Method: "m", Ended: func(err error) {
				table.Lock()
				defer table.Unlock()
				over <- err
			}})
		})}).raw()
		go readAll(cloud)
		write(t, node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		synctest.Wait()
		table.Lock()
		up.Cut(CloseCustodyEnded, "custody ended")
		table.Unlock()
		if err := <-over; !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		node.CloseNow()
		cloud.CloseNow()
		<-up.Done()
		<-down.Done()
	})
}

func TestTheOwnerIsToldOfTheEndOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ends []*EndError
		peer, s := newRig(t, Config{Peer: "raw", Ended: func(e *EndError) { ends = append(ends, e) }}).raw()
		s.Close(CloseRestart, "draining")
		s.Cut(CloseCustodyEnded, "custody ended")
		peer.CloseNow()
		<-s.Done()
		if len(ends) != 1 || ends[0].Code != CloseRestart {
			t.Fatalf("told %v", ends)
		}
	})
}

// TestDrainAnswersWhatIsServedAndRefusesWhatComes.
func TestDrainAnswersWhatIsServedAndRefusesWhatComes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var held []*Request
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) { held = append(held, r) })})
		first := make(chan string, 1)
		go func() {
			a, err := c.Call(context.Background(), "m", nil, CallOptions{})
			if err != nil {
				first <- err.Error()
				return
			}
			first <- string(a.Response())
			a.Release()
		}()
		synctest.Wait()
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(context.Background(), "relay-not-ready", CloseRestart, "draining") }()
		synctest.Wait()
		_, err := c.Call(context.Background(), "m", nil, CallOptions{})
		var remote *RemoteError
		if !errors.As(err, &remote) || string(remote.Data) != `{"code":"relay-not-ready"}` || !strings.HasPrefix(remote.Text, "relay-not-ready: ") {
			t.Fatalf("%v", err)
		}
		held[0].Answer([]byte(`{"late":true}`))
		if got := <-first; got != `{"late":true}` {
			t.Fatal(got)
		}
		if err := <-drained; err != nil {
			t.Fatal(err)
		}
		wantEnd(t, c, CloseRestart, true)
	})
	bubble(t, func(t *testing.T) { // bounded by its context
		var held *Request
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) { held = r })})
		go c.Call(context.Background(), "m", nil, CallOptions{})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Drain(ctx, "relay-not-ready", CloseRestart, "draining"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Fatalf("%v after %s", err, time.Since(start))
		}
		<-s.Done()
		held.Drop()
	})
}

// TestServingIsBoundedInBytes: what is forwarded no longer counts here.
func TestServingIsBoundedInBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var held []*Request
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", Limits: Limits{ServingBytes: 3 << 20}, Handler: HandlerFunc(func(r *Request) { held = append(held, r) })})
		body := []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
		for range 2 {
			go func() {
				if a, err := c.Call(context.Background(), "m", body, CallOptions{}); err == nil {
					a.Release()
				}
			}()
			synctest.Wait()
		}
		_, err := c.Call(context.Background(), "m", body, CallOptions{})
		var remote *RemoteError
		if !errors.As(err, &remote) || string(remote.Data) != `{"code":"overloaded"}` || len(held) != 2 {
			t.Fatalf("%v, %d held", err, len(held))
		}
		for _, r := range held {
			r.Answer(nil)
		}
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held != 0 {
			t.Fatalf("%d bytes counted at rest", s.held)
		}
	})
}

// TestAFrameLimitThatChangesDoesNotTouchTheMessageAtHand.
func TestAFrameLimitThatChangesDoesNotTouchTheMessageAtHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, s := newRig(t, Config{Peer: "raw", Limits: Limits{Frame: 1 << 20}, Handler: handlers{"echo": func(r *Request) { r.Answer([]byte(`{"ok":1}`)) }}}).wired(same)
		text := []byte(`{"method":"echo","request":{"x":"` + strings.Repeat("x", 100<<10) + `"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		w.conn.Write(append(appendHeader(nil, finBit|opText, len(text), new([4]byte)), text[:50<<10]...))
		synctest.Wait()
		s.SetFrameLimit(1<<10, 1<<10)
		w.conn.Write(text[50<<10:])
		synctest.Wait()
		w.conn.Close()
		<-s.Done()
		if got := <-w.done; !bytes.Contains(got, []byte(`"response":{"ok":1}`)) {
			t.Fatalf("%.200s", got)
		}
	})
}

// TestACutDuringAFlushStopsIt: drain, and then the custody ends.
func TestACutDuringAFlushStopsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *gate
		r := newRig(t, Config{Peer: "raw"})
		peer := rawOver(t, r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { g = newGate(c); return g, s }), func() {})
		s := <-r.accepted
		g.shut()
		dropped := 0
		for range 3 {
			b := newNull()
			b.Append(make([]byte, 1<<20))
			if err := s.push("f", queue.Item{Buf: b, Sent: func(left bool) {
				if !left {
					dropped++
				}
			}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		s.Close(CloseRestart, "draining")
		synctest.Wait()
		start := time.Now()
		s.Cut(CloseCustodyEnded, "custody ended")
		if d := time.Since(start); d != 0 {
			t.Fatalf("took %s", d)
		}
		g.open()
		if n, _ := readAll(peer); n != 0 {
			t.Fatalf("%d messages arrived", n)
		}
		<-s.Done()
		if dropped != 3 {
			t.Fatalf("%d of 3 owners were told that their frame was dropped", dropped)
		}
	})
}

// TestASlowPeerIsToldWhyAfterAFlush: the flush ends after 2 s, at the edge of a
// frame, and the close frame follows.
func TestASlowPeerIsToldWhyAfterAFlush(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, Config{Peer: "raw"})
		peer := rawOver(t, r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { return &slowConn{c, 1 << 20}, s }), func() {})
		s := <-r.accepted
		for range 7 {
			b := newNull()
			b.Append(make([]byte, 1<<20))
			if err := s.push("f", itemOf(b)); err != nil {
				t.Fatal(err)
			}
		}
		s.Close(CloseRestart, "draining")
		if closed := closeSeen(t, peer); closed.Code != 1012 || closed.Reason != "draining" {
			t.Fatalf("%v", closed)
		}
		<-s.Done()
	})
}

// TestForwardUsesItsFlows, and tells of its end when the answer went back; an
// answer that is erased leaves nothing.
func TestForwardUsesItsFlows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := make(chan error, 1)
		seen := &sentMemory{}
		cloud, up := newRig(t, Config{Peer: "cloudly", Limits: Limits{Flow: 1}}).raw()
		node, down := newRig(t, Config{Peer: "node", Recorder: seen, Handler: HandlerFunc(func(r *Request) {
			var full *queue.FullError
			if err := r.Forward(up, Forward{Method: "m", Flow: "node-a"}); !errors.As(err, &full) || full.Flow != "node-a" {
				t.Errorf("%v", err)
			}
			if err := r.Forward(up, Forward{Method: "m", Ended: func(err error) { ended <- err },
				Judge: func(a *ForwardedAnswer) error { a.Erase(); return nil }}); err != nil {
				t.Error(err)
			}
		})}).raw()
		write(t, node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		id, instance, _ := ids(t, read(t, cloud))
		write(t, cloud, fmt.Sprintf(`{"method":"m","response":{"s":"SECRET"},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
		if got := read(t, node); !strings.Contains(got, "SECRET") {
			t.Fatal(got)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if bytes.Contains(seen.mem, []byte("SECRET")) {
			t.Fatal("the erased answer's memory is still there")
		}
		node.CloseNow()
		cloud.CloseNow()
		<-up.Done()
		<-down.Done()
	})
}

// TestNothingAbnormalIsWrittenAsACloseCode: 1005 and 1006 never appear on the
// wire (RFC 6455 §7.4.1).
func TestNothingAbnormalIsWrittenAsACloseCode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, s := newRig(t, Config{Peer: "raw"}).wired(same)
		synctest.Wait()
		w.send(opClose, nil) // without a code
		wantEnd(t, s, closeNoStatus, true)
		w.conn.Close()
		if got := <-w.done; !bytes.Equal(got, []byte{0x88, 0}) {
			t.Fatalf("answered % x", got)
		}
	})
}

// TestAFailedForwardIsForgotten, and one that was begun counts no memory at its
// source any more.
func TestAFailedForwardIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gone, dead := newRig(t, Config{Peer: "cloudly"}).raw()
		gone.CloseNow()
		<-dead.Done()
		cloud, up := newRig(t, Config{Peer: "cloudly"}).raw()
		node, down := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			s := r.Socket()
			counted := func() (forwards, bytes int) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.forwards), s.held
			}
			err := r.Forward(dead, Forward{Method: "m"})
			if n, held := counted(); err == nil || n != 0 || held == 0 {
				t.Errorf("%v, %d tracked, %d bytes counted", err, n, held)
			}
			err = r.Forward(up, Forward{Method: "m"})
			if n, held := counted(); err != nil || n != 1 || held != 0 {
				t.Errorf("%v, %d tracked, %d bytes counted", err, n, held)
			}
		})}).raw()
		write(t, node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		read(t, cloud)
		synctest.Wait() // the handler may have some of it to look at still
		node.CloseNow()
		cloud.CloseNow()
		<-up.Done()
		<-down.Done()
	})
}

// TestAnswersGoBackInAFlow by default: one that is too large for it is refused,
// which the own frames would have taken.
func TestAnswersGoBackInAFlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cloud, up := newRig(t, Config{Peer: "cloudly"}).raw()
		node, down := newRig(t, Config{Peer: "node", Limits: Limits{Flow: 1}, Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(up, Forward{Method: "m"}); err != nil {
				t.Error(err)
			}
		})}).raw()
		write(t, node, `{"method":"m","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		id, instance, _ := ids(t, read(t, cloud))
		write(t, cloud, fmt.Sprintf(`{"method":"m","response":{},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
		if got := read(t, node); !strings.HasSuffix(got, `"error":{"text":"Internal server error","data":{}}}`) || down.Err() != nil {
			t.Fatalf("%s, %v", got, down.Err())
		}
		node.CloseNow()
		cloud.CloseNow()
		<-up.Done()
		<-down.Done()
	})
}

// TestACallWithStreamsIsNotSentAgain: their descriptors are good once.
func TestACallWithStreamsIsNotSentAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := pair(t, Config{Peer: "server", Streams: true}, Config{Peer: "client", Streams: true, Handler: HandlerFunc(func(r *Request) { r.Retry(time.Second, "busy") })})
		out, err := c.Streams().Offer(stream.Options{Direction: stream.Send})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Call(context.Background(), "m", out.Descriptor(), CallOptions{Streams: []*stream.Stream{out}})
		var limit *RetryLimitError
		if !errors.As(err, &limit) || limit.Sends != 1 || out.Err() == nil {
			t.Fatalf("%v, stream %v", err, out.Err())
		}
	})
}

// TestAStreamThatNobodyOpensFailsByItself, 10 s after its request left.
func TestAStreamThatNobodyOpensFailsByItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := pair(t, Config{Peer: "server", Streams: true}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) { r.Answer(nil) })})
		out, err := c.Streams().Offer(stream.Options{Direction: stream.Send})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		a, err := c.Call(context.Background(), "m", out.Descriptor(), CallOptions{Streams: []*stream.Stream{out}})
		if err != nil {
			t.Fatal(err)
		}
		a.Release()
		<-out.Done()
		if d := time.Since(start); !errors.Is(out.Err(), stream.ErrNotOpened) || d != 10*time.Second {
			t.Fatalf("%v after %s", out.Err(), d)
		}
		if _, err := c.Streams().Offer(stream.Options{Direction: stream.Send}); !errors.Is(err, stream.ErrNotOpened) {
			t.Fatalf("the next one: %v", err)
		}
	})
}

func TestDrainEndsWithItsSocket(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var held *Request
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) { held = r })})
		go c.Call(context.Background(), "m", nil, CallOptions{})
		synctest.Wait()
		time.AfterFunc(time.Second, func() { c.Close(CloseNormal, "") })
		start := time.Now()
		if err := s.Drain(context.Background(), "relay-not-ready", CloseRestart, "draining"); err != nil || time.Since(start) > 2*time.Second {
			t.Fatalf("%v after %s", err, time.Since(start))
		}
		held.Drop()
	})
}
