package typedsocket

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket/stream"
)

// fuse is a connection that breaks after a number of bytes, counted over both
// directions from when it is lit.
type fuse struct {
	net.Conn
	mu   sync.Mutex
	lit  bool
	left int
}

func (f *fuse) light(n int) { f.mu.Lock(); f.lit, f.left = true, n; f.mu.Unlock() }

// burn takes n bytes, or as many as are left, and reports whether it broke.
func (f *fuse) burn(n int) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.lit || n <= f.left {
		f.left -= n
		return n, false
	}
	n, f.left = max(f.left, 0), -1
	return n, true
}

func (f *fuse) burnt() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.lit && f.left < 0 }

func (f *fuse) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if n, broke := f.burn(n); broke {
		f.Conn.Close()
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (f *fuse) Write(p []byte) (int, error) {
	n, broke := f.burn(len(p))
	if !broke {
		return f.Conn.Write(p)
	}
	n, _ = f.Conn.Write(p[:n])
	f.Conn.Close()
	return n, io.ErrClosedPipe
}

// everyStep runs a scenario with a fuse of every length, in steps, until one
// is long enough that nothing breaks. bubble checks for each that no goroutine
// and no buffer is left; the scenario returning shows that no caller waits.
func everyStep(t *testing.T, step int, scenario func(t *testing.T, n int) (broke bool)) {
	for n := 0; ; n += step {
		broke := false
		bubble(t, func(t *testing.T) { broke = scenario(t, n) })
		if t.Failed() {
			t.Fatalf("with a fuse of %d bytes", n)
		}
		if !broke {
			if n == 0 {
				t.Fatal("the scenario carries nothing")
			}
			return
		}
		if n > 600 && step == 1 {
			step = 61
		}
	}
}

// fused connects with a fuse on the client's or the server's end.
func fused(r *rig, cfg Config, atServer bool) (c, s *Socket, f *fuse) {
	c, s = r.connect(cfg, func(cc, sc net.Conn) (net.Conn, net.Conn) {
		if atServer {
			f = &fuse{Conn: sc}
			return cc, f
		}
		f = &fuse{Conn: cc}
		return f, sc
	})
	return c, s, f
}

func TestCuttingEitherEndAtEveryStepOfACall(t *testing.T) {
	for _, atServer := range []bool{false, true} {
		everyStep(t, 1, func(t *testing.T, n int) bool {
			c, _, f := fused(newRig(t, Config{Peer: "client", Handler: handlers{"echo": echo}}), Config{Peer: "server"}, atServer)
			synctest.Wait()
			f.light(n)
			a, err := c.Call(context.Background(), "echo", []byte(`{"body":"some text"}`), CallOptions{})
			if err == nil {
				a.Release()
			} else if !f.burnt() {
				t.Errorf("call gave %v", err)
			}
			return f.burnt()
		})
	}
}

func TestCuttingEitherSocketAtEveryStepOfAForward(t *testing.T) {
	for _, cutUp := range []bool{false, true} {
		for _, atServer := range []bool{false, true} {
			everyStep(t, 1, func(t *testing.T, n int) bool {
				var up *Socket
				ended := make(chan error, 1)
				relay := HandlerFunc(func(r *Request) {
					err := r.Forward(up, Forward{Method: "m", Flow: "node", Ended: func(err error) { ended <- err }})
					if err != nil {
						r.Fail()
						ended <- err
					}
				})
				cloud := newRig(t, Config{Peer: "relay", Handler: handlers{"m": echo}})
				nodes := newRig(t, Config{Peer: "node", Handler: relay})
				var f, g *fuse
				up, _, f = fused(cloud, Config{Peer: "cloudly"}, atServer)
				node, down, g := fused(nodes, Config{Peer: "relay"}, atServer)
				if !cutUp {
					f = g
				}
				synctest.Wait()
				f.light(n)
				a, err := node.Call(context.Background(), "m", []byte(`{"body":"some text"}`), CallOptions{Timeout: time.Minute})
				if err == nil {
					a.Release()
				} else if !f.burnt() {
					t.Errorf("call gave %v", err)
				}
				synctest.Wait()
				for _, s := range []*Socket{up, down} {
					if st := s.Stats(); st.Pending != 0 || st.Serving != 0 {
						t.Errorf("left over: %+v", st)
					}
				}
				return f.burnt()
			})
		}
	}
}

// TestCuttingEitherEndAtEveryStepOfAStream sends a stream whose descriptor
// stands in a request, and breaks the connection anywhere.
func TestCuttingEitherEndAtEveryStepOfAStream(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 20_000)
	for _, atServer := range []bool{false, true} {
		everyStep(t, 1, func(t *testing.T, n int) bool {
			received := make(chan int, 1)
			take := func(r *Request) {
				in, err := r.Socket().Streams().Open(r.Body())
				if err != nil {
					r.Fail()
					received <- 0
					return
				}
				r.Answer([]byte(`{"accepted":true}`))
				go func() {
					got, err := io.ReadAll(in)
					if err == nil {
						in.Accept()
					}
					received <- len(got)
				}()
			}
			c, _, f := fused(newRig(t, Config{Peer: "client", Streams: true, Handler: handlers{"take": take}}), Config{Peer: "server", Streams: true}, atServer)
			synctest.Wait()
			f.light(n * 3)
			out, err := c.Streams().Offer(stream.Options{Direction: stream.Send})
			if err != nil {
				t.Fatal(err)
			}
			a, err := c.Call(context.Background(), "take", out.Descriptor(), CallOptions{Streams: []*stream.Stream{out}})
			if err == nil {
				a.Release()
				_, err = out.Write(content)
				if err == nil {
					_, err = out.CloseSend(context.Background())
				}
			}
			if !f.burnt() {
				if err != nil {
					t.Errorf("stream gave %v", err)
				}
				if got := <-received; got != len(content) {
					t.Errorf("%d bytes arrived", got)
				}
			}
			<-out.Done()
			return f.burnt()
		})
	}
}

func TestAFailedCallAbortsItsStreams(t *testing.T) {
	bubble(t, func(t *testing.T) {
		reason := make(chan error, 1)
		refuse := func(r *Request) {
			in, err := r.Socket().Streams().Open(r.Body())
			if err != nil {
				t.Error(err)
			}
			go func() {
				_, err := io.ReadAll(in)
				reason <- err
			}()
			r.Refuse("restore-node-not-carried: no such node", nil)
		}
		c, _ := pair(t, Config{Peer: "server", Streams: true}, Config{Peer: "client", Streams: true, Handler: handlers{"take": refuse}})
		out, err := c.Streams().Offer(stream.Options{Direction: stream.Send})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := c.Call(context.Background(), "take", out.Descriptor(), CallOptions{Streams: []*stream.Stream{out}}); err == nil {
			t.Fatal("not refused")
		}
		<-out.Done()
		if out.Err() == nil || time.Since(start) != 0 {
			t.Fatalf("the stream of a failed call stood for %s and ended with %v", time.Since(start), out.Err())
		}
		if err := <-reason; err == nil {
			t.Fatal("the receiver saw a regular end")
		}
	})
}

// TestAStreamDelaysAReportByOneChunk: while a large stream fills a slow
// socket, a request gets through within about a chunk's time.
func TestAStreamDelaysAReportByOneChunk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		take := func(r *Request) {
			in, err := r.Socket().Streams().Open(r.Body())
			if err != nil {
				t.Error(err)
			}
			r.Answer([]byte(`{}`))
			go func() { io.Copy(io.Discard, in); in.Accept() }()
		}
		c, _ := newRig(t, Config{Peer: "client", Streams: true, Handler: handlers{"take": take, "echo": echo}}).connect(
			Config{Peer: "server", Streams: true}, func(c, s net.Conn) (net.Conn, net.Conn) { return c, &slowConn{s, 1 << 20} })
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
			_, err := out.Write(make([]byte, 8<<20))
			if err == nil {
				_, err = out.CloseSend(context.Background())
			}
			done <- err
		}()
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			start := time.Now()
			a, err := c.Call(context.Background(), "echo", []byte(`{}`), CallOptions{Flow: "node"})
			if err != nil {
				t.Fatal(err)
			}
			a.Release()
			// A chunk of 64 KiB takes 62.5 ms at 1 MiB/s; one may be on its
			// way and one may have its turn first.
			if d := time.Since(start); d > 200*time.Millisecond {
				t.Fatalf("a request took %s beside a stream", d)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
