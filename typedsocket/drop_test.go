package typedsocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/queue"
	"serve.zone/relay/typedsocket/stream"
)

// filled is a frame of n bytes of one letter.
func filled(letter string, n int) *buffer.Buffer {
	return buffer.Of(bytes.Repeat([]byte(letter), n))
}

// tally is what owners of frames were told.
type tally struct {
	mu  sync.Mutex
	all []string
}

func (l *tally) add(letter string, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf("%s %v", letter, left))
}

// sorted is in no order of time: writer and DropFlows tell in their own.
func (l *tally) sorted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.all))
}

// pushAll queues frames at once, so that one batch has them all. A frame is its
// flow, its letter and its size.
func pushAll(t testing.TB, s *Socket, left *tally, frames ...string) {
	t.Helper()
	s.mu.Lock()
	for _, f := range frames {
		var flow, letter string
		var size int
		if _, err := fmt.Sscan(f, &flow, &letter, &size); err != nil {
			t.Fatal(err)
		}
		if flow == "own" {
			flow = ""
		}
		item := queue.Item{Buf: filled(letter, size), Sent: func(ok bool) { left.add(letter, ok) }}
		if err := s.pushLocked(flow, item); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Unlock()
	s.wakeWriter()
}

// callLater calls in the background and returns where the outcome comes.
func callLater(s *Socket, method string, o CallOptions) <-chan error {
	done := make(chan error, 1)
	go func() {
		a, err := s.Call(context.Background(), method, nil, o)
		if err == nil {
			a.Release()
		}
		done <- err
	}()
	synctest.Wait()
	return done
}

// R20: when custody ends while the writer is stalled, nothing that nodes had queued
// leaves, whoever waits for it is told, and the own frames leave.
func TestR20_DropFlowsTakesBackWhatNodesQueued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ended []error
		var down *Socket
		cloud, up := newRig(t, Config{Peer: "cloudly", Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(down, Forward{Method: "push", AnswerFlow: "node-a"}); err != nil {
				t.Error(err)
			}
		})}).raw()
		node, d := newRig(t, Config{Peer: "node", Handler: HandlerFunc(func(r *Request) {
			r.Erase()
			err := r.Forward(up, Forward{Method: "report", Flow: "node-a", Ended: func(err error) { ended = append(ended, err) },
				Failed: func(err error) (string, []byte) { return err.Error(), []byte(`{}`) }})
			if err != nil {
				t.Error(err)
			}
		})}).raw()
		down = d
		write(t, cloud, `{"method":"push","request":{},"requestInstanceId":"pi","correlation":{"id":"pc","phase":"request"}}`)
		pushID, pushInstance, _ := ids(t, read(t, node))

		first := callLater(up, "first", CallOptions{}) // nobody reads: the writer is stalled in it
		write(t, node, `{"method":"report","request":{"of":"node"},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		write(t, node, fmt.Sprintf(`{"method":"push","response":{"of":"node"},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, pushInstance, pushID))
		flowing := callLater(up, "flowing", CallOptions{Flow: "x"})
		second := callLater(up, "second", CallOptions{})
		if st := up.Stats(); st.QueuedFlow == 0 || st.Pending != 4 {
			t.Fatalf("%+v", st)
		}
		start := time.Now()
		up.DropFlows(CloseCustodyEnded, "custody ended")
		if st := up.Stats(); time.Since(start) != 0 || st.QueuedFlow != 0 || st.Dropped != 3 || up.Err() != nil {
			t.Fatalf("after %s: %+v, %v", time.Since(start), st, up.Err())
		}
		if err := <-flowing; !errors.Is(err, ErrDropped) || !errors.Is(err, ErrClosed) {
			t.Errorf("the call in a flow gave %v", err)
		}
		if got := read(t, node); !strings.HasSuffix(got, `"error":{"text":"dropped before it left: socket closed","data":{}}}`) {
			t.Errorf("the node was answered %s", got)
		}
		synctest.Wait()
		if len(ended) != 1 || !errors.Is(ended[0], ErrDropped) {
			t.Errorf("the forward ended with %v", ended)
		}
		if st := up.Stats(); st.Pending != 2 {
			t.Errorf("%d still wait", st.Pending)
		}

		for _, method := range []string{"first", "second", "push"} {
			text := read(t, cloud)
			if !strings.HasPrefix(text, `{"method":"`+method+`"`) || strings.Contains(text, "of") {
				t.Fatalf("%s is not the frame of %s", text, method)
			}
			if method == "push" {
				if want := `{"method":"push","request":null,"response":null,"requestInstanceId":"pi","correlation":{"id":"pc","phase":"response"},"error":{"text":"Internal server error","data":{}}}`; text != want {
					t.Errorf("the push was answered %s", text)
				}
				continue
			}
			id, instance, _ := ids(t, text)
			write(t, cloud, fmt.Sprintf(`{"method":%q,"response":{},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, method, instance, id))
		}
		for _, own := range []<-chan error{first, second} {
			if err := <-own; err != nil {
				t.Error(err)
			}
		}
		if st := up.Stats(); st.FramesOut != 3 {
			t.Errorf("%d frames have left", st.FramesOut)
		}
		// Flows are as good as before.
		write(t, node, `{"method":"report","request":{"of":"later"},"requestInstanceId":"j","correlation":{"id":"d","phase":"request"}}`)
		if got := read(t, cloud); !strings.Contains(got, "later") {
			t.Errorf("%s", got)
		}
		node.CloseNow()
		cloud.CloseNow()
		<-up.Done()
		<-down.Done()
	})
}

// TestDropFlowsReachesTheBatchInHand: what the writer has taken out of the queue
// and not begun does not leave either.
func TestDropFlowsReachesTheBatchInHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var left tally
		peer, s := newRig(t, Config{Peer: "raw"}).raw()
		synctest.Wait()
		pushAll(t, s, &left, "own A 20000", "f B 10", "g C 20000", "f D 30", "h E 40000")
		synctest.Wait() // stalled in the first one
		if st := s.Stats(); st.QueuedOwn+st.QueuedFlow != 0 {
			t.Fatalf("not one batch: %+v", st)
		}
		start := time.Now()
		s.DropFlows(CloseCustodyEnded, "custody ended")
		if d := time.Since(start); d != 0 {
			t.Errorf("took %s although no write has bytes of flows", d)
		}
		pushAll(t, s, &left, "own F 10", "f G 10")
		for _, want := range []string{"A", "F", "G"} {
			if got := read(t, peer); got[:1] != want {
				t.Fatalf("got a frame of %s, want %s", got[:1], want)
			}
		}
		synctest.Wait()
		if want := []string{"A true", "B false", "C false", "D false", "E false", "F true", "G true"}; !slices.Equal(left.sorted(), want) {
			t.Errorf("owners were told %v", left.sorted())
		}
		if st := s.Stats(); st.Dropped != 4 || st.FramesOut != 3 || st.BytesOut != 20020 {
			t.Errorf("%+v", st)
		}
		peer.CloseNow()
		<-s.Done()
	})
}

// TestDropFlowsBetweenGatheringAndWriting: small frames have been copied together
// when they are revoked. Control frames and own ones stay.
func TestDropFlowsBetweenGatheringAndWriting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var left tally
		wire, s := newRig(t, Config{Peer: "raw"}).wired(same)
		synctest.Wait()
		w := frameWriter{s: s} // in the place of the socket's own, which sleeps
		ping := appendControl(nil, opPing, nil, nil)
		s.mu.Lock()
		for _, flow := range []string{"", "f"} {
			if err := s.pushLocked(flow, queue.Item{Buf: filled("OF"[len(flow):][:1], 3), Sent: func(ok bool) { left.add("OF"[len(flow):][:1], ok) }}); err != nil {
				t.Fatal(err)
			}
		}
		s.mu.Unlock()
		if err := w.collect(true); err != nil {
			t.Fatal(err)
		}
		s.DropFlows(CloseCustodyEnded, "custody ended")
		if err := w.gather(ping); err != nil {
			t.Fatal(err)
		}
		w.rest()
		for i := range w.items {
			w.items[i].end(true)
		}
		s.Cut(CloseNormal, "")
		wire.conn.Close()
		<-s.Done()
		got := <-wire.done
		if want := append(append(ping, appendHeader(nil, finBit|opText, 3, nil)...), "OOO"...); !bytes.HasPrefix(got, want) || bytes.Contains(got, []byte("FFF")) {
			t.Errorf("sent %q", got)
		}
		if got := left.sorted(); !slices.Equal(got, []string{"F false", "O true"}) {
			t.Errorf("owners were told %v", got)
		}
	})
}

// TestDropFlowsCutsWhereAWriteIsStalled: bytes of a node are in it, and nothing
// else keeps them from leaving.
func TestDropFlowsCutsWhereAWriteIsStalled(t *testing.T) {
	for _, size := range []int{100, 20 << 10, 1 << 20} {
		bubble(t, func(t *testing.T) {
			var left tally
			peer, s := newRig(t, Config{Peer: "raw"}).raw()
			synctest.Wait()
			pushAll(t, s, &left, fmt.Sprint("f C ", size), "f D 100")
			synctest.Wait()
			pushAll(t, s, &left, "own A 10")
			start := time.Now()
			s.DropFlows(CloseCustodyEnded, "custody ended")
			if d := time.Since(start); d != dropWait {
				t.Errorf("%d bytes: returned after %s", size, d)
			}
			wantEnd(t, s, CloseCustodyEnded, false)
			if n, _ := readAll(peer); n != 0 {
				t.Errorf("%d bytes: %d messages arrived after the cut", size, n)
			}
			if got := left.sorted(); !slices.Equal(got, []string{"A false", "C false", "D false"}) {
				t.Errorf("%d bytes: owners were told %v", size, got)
			}
		})
	}
}

// TestDropFlowsWaitsForAWriteThatIsTaken: the frame has left before it returns,
// and its answer is still one.
func TestDropFlowsWaitsForAWriteThatIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "raw"}).raw()
		done := callLater(s, "m", CallOptions{Flow: "node-a"})
		texts := make(chan string, 1)
		time.AfterFunc(dropWait-1, func() { texts <- read(t, peer) })
		start := time.Now()
		s.DropFlows(CloseCustodyEnded, "custody ended")
		if d := time.Since(start); d != dropWait-1 || s.Err() != nil || s.Stats().Dropped != 0 {
			t.Errorf("%s, %v, %+v", d, s.Err(), s.Stats())
		}
		id, instance, _ := ids(t, <-texts)
		write(t, peer, fmt.Sprintf(`{"method":"m","response":{},"requestInstanceId":%q,"correlation":{"id":%q,"phase":"response"}}`, instance, id))
		if err := <-done; err != nil {
			t.Error(err)
		}
		peer.CloseNow()
		<-s.Done()
	})
}

// TestDropFlowsDuringAFlush: a socket that is closing sends its own frames alone.
func TestDropFlowsDuringAFlush(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var left tally
		peer, s := newRig(t, Config{Peer: "raw"}).raw()
		synctest.Wait()
		pushAll(t, s, &left, "own A 10")
		synctest.Wait()
		pushAll(t, s, &left, "f B 100000", "own C 10", "f D 10")
		s.Close(CloseRestart, "draining")
		s.DropFlows(CloseCustodyEnded, "custody ended")
		if got := read(t, peer) + read(t, peer); got != strings.Repeat("A", 10)+strings.Repeat("C", 10) {
			t.Errorf("%.40q", got)
		}
		if closed := closeSeen(t, peer); closed.Code != 1012 {
			t.Errorf("%v", closed)
		}
		<-s.Done()
		if want := []string{"A true", "B false", "C true", "D false"}; !slices.Equal(left.sorted(), want) {
			t.Errorf("owners were told %v", left.sorted())
		}
		s.DropFlows(CloseCustodyEnded, "again") // does nothing
	})
}

// TestDropFlowsLeavesFailuresOfForwards: they are this side's own, whoever they
// stand in for.
func TestDropFlowsLeavesFailuresOfForwards(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var node *Socket
		cloud, up := newRig(t, Config{Peer: "cloudly", Handler: HandlerFunc(func(r *Request) {
			if err := r.Forward(node, Forward{Method: "push", AnswerFlow: "node-a",
				Failed: func(error) (string, []byte) { return "relay-node-not-carried: gone", nil }}); err != nil {
				t.Error(err)
			}
		})}).raw()
		peer, n := newRig(t, Config{Peer: "node"}).raw()
		node = n
		write(t, cloud, `{"method":"push","request":{},"requestInstanceId":"i","correlation":{"id":"c","phase":"request"}}`)
		read(t, peer)
		own := callLater(up, "own", CallOptions{Timeout: time.Second}) // the writer is stalled in it
		node.Cut(CloseCustodyEnded, "custody ended")
		synctest.Wait()
		up.DropFlows(CloseCustodyEnded, "custody ended")
		read(t, cloud)
		if got := read(t, cloud); !strings.Contains(got, `"text":"relay-node-not-carried: gone"`) || up.Stats().Dropped != 0 {
			t.Errorf("answered %s, %+v", got, up.Stats())
		}
		<-own
		peer.CloseNow()
		cloud.CloseNow()
		<-up.Done()
		<-node.Done()
	})
}

// TestDoneWaitsForWhomDropFlowsTells.
func TestDoneWaitsForWhomDropFlowsTells(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, s := newRig(t, Config{Peer: "raw"}).raw()
		own := callLater(s, "own", CallOptions{})
		listening := make(chan struct{})
		if err := s.push("node-a", queue.Item{Buf: filled("F", 10), Sent: func(bool) { <-listening }}); err != nil {
			t.Fatal(err)
		}
		s.DropFlows(CloseCustodyEnded, "custody ended") // does not wait for them
		s.Cut(CloseCustodyEnded, "custody ended")
		<-own
		time.Sleep(time.Minute)
		select {
		case <-s.Done():
			t.Error("done while an owner is being told")
		default:
		}
		close(listening)
		<-s.Done()
	})
}

// TestDropFlowsAbortsStreams, whose bytes are of the same custody: none of those
// queued leaves, and no stream goes on with a gap.
func TestDropFlowsAbortsStreams(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *gate
		received := make(chan error, 2)
		total := 0
		take := func(r *Request) {
			in, err := r.Socket().Streams().Open(r.Body())
			if err != nil {
				t.Error(err)
				return
			}
			r.Answer(nil)
			go func() {
				n, err := io.Copy(io.Discard, in)
				total += int(n)
				if err == nil {
					in.Accept()
				}
				received <- err
			}()
		}
		c, s := newRig(t, Config{Peer: "relay", Streams: true, Handler: handlers{"take": take, "echo": echo}}).connect(Config{Peer: "cloudly", Streams: true},
			func(c, s net.Conn) (net.Conn, net.Conn) { g = newGate(s); return c, g })
		send := func(n int) (written <-chan error) {
			out, err := c.Streams().Offer(stream.Options{Direction: stream.Send})
			if err != nil {
				t.Fatal(err)
			}
			a, err := c.Call(context.Background(), "take", out.Descriptor(), CallOptions{Streams: []*stream.Stream{out}})
			if err != nil {
				t.Fatal(err)
			}
			a.Release()
			done := make(chan error, 1)
			go func() {
				_, err := out.Write(make([]byte, n))
				if err == nil {
					_, err = out.CloseSend(context.Background())
				}
				done <- err
			}()
			return done
		}
		g.shut()
		own := callLater(c, "echo", CallOptions{}) // the writer is stalled in an own frame
		g.open()
		<-own
		done := send(300 << 10)
		g.shut()
		synctest.Wait()
		before := total
		own = callLater(c, "echo", CallOptions{})
		time.AfterFunc(dropWait/2, g.open)
		c.DropFlows(CloseCustodyEnded, "custody ended")
		var aborted *stream.AbortedError
		if err := <-done; !errors.As(err, &aborted) || aborted.Reason != "custody ended" {
			t.Errorf("the sender got %v", err)
		}
		if err := <-received; !errors.As(err, &aborted) || !aborted.Remote {
			t.Errorf("the receiver got %v", err)
		}
		if err := <-own; err != nil {
			t.Error(err)
		}
		if n := total - before; n > stream.ChunkSize*2 {
			t.Errorf("%d bytes arrived after the drop", n)
		}
		if st := c.Stats(); st.Dropped == 0 || st.QueuedFlow != 0 || s.Stats().BinaryDropped != 0 {
			t.Errorf("%+v, %+v", st, s.Stats())
		}
		// A new stream has all it needs.
		if err := <-send(300 << 10); err != nil {
			t.Error(err)
		}
		if err := <-received; err != nil {
			t.Error(err)
		}
	})
}
