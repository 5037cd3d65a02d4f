package listener

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/buffer"
)

// meterConn counts the bytes that our side takes from its peer.
type meterConn struct {
	net.Conn
	taken *atomic.Int64
}

func (c *meterConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.taken.Add(int64(n))
	return n, err
}

// meteredListener counts what all its connections take.
type meteredListener struct {
	net.Listener
	taken atomic.Int64
}

func (l *meteredListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &meterConn{conn, &l.taken}, nil
}

// overhead is what may be taken of one connection besides its messages: the
// handshakes, the headers of TLS records, and what lies in a read buffer.
const overhead = 24 << 10

// B169: a thousand sockets that nobody registered announce a frame without an end and
// send it slowly. What is taken of each, and so what is held, ends at the limit of an
// unregistered socket.
func TestB169_StrangersCannotFillMemory(t *testing.T) {
	const strangers = 1000
	bubble(t, func(t *testing.T) {
		var metered meteredListener
		r := newRig(t, func(c *Config) {
			listen := c.Listen
			c.Listen = func(ctx context.Context, network, address string) (net.Listener, error) {
				l, err := listen(ctx, network, address)
				metered.Listener = l
				return &metered, err
			}
		})
		before := buffer.Lent()
		conns := make([]*rawConn, strangers)
		for i := range conns {
			conns[i] = r.upgraded()
			conns[i].send(frame(0x81, 1<<40, `{"a":"`))
		}
		var writers sync.WaitGroup
		piece := strings.Repeat("x", 15<<10)
		for i := range 4 {
			for _, c := range conns {
				writers.Go(func() { io.WriteString(c, piece) })
			}
			writers.Wait()
			time.Sleep(time.Second)
			if held := buffer.Lent() - before; held != strangers {
				t.Fatalf("%d buffers are held after %d s, want one a socket", held, i+1)
			}
		}
		if taken, most := metered.taken.Load(), int64(strangers*(contract.UnregisteredFrameLimit+overhead)); taken > most {
			t.Errorf("%d bytes were taken of %d strangers, more than %d", taken, strangers, most)
		}
		// The next pieces pass the limit. The socket ends there, at once.
		for _, c := range conns {
			writers.Go(func() { io.WriteString(c, piece+piece) })
			writers.Go(func() {
				if code, _ := c.closeFrame(); code != typedsocket.CloseTooBig {
					t.Errorf("closed with %d", code)
				}
				c.Close()
			})
		}
		writers.Wait()
		synctest.Wait()
		r.wantMetric(strangers, "relay_listener_closed_sockets_total", "too-big")
		if held := buffer.Lent() - before; held != 0 {
			t.Errorf("%d buffers are still held", held)
		}
		time.Sleep(5 * time.Second)
		if open := r.Status().(Status).Sockets.Open; open != 0 {
			t.Errorf("%d places are still taken", open)
		}
	})
}

// TestAStallingStrangerIsGoneAfterItsTime, and its memory with it.
func TestAStallingStrangerIsGoneAfterItsTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		before := buffer.Lent()
		c := r.upgraded()
		c.send(frame(0x81, 1<<40, strings.Repeat("x", 60<<10)))
		go io.Copy(io.Discard, c.reader)
		time.Sleep(registrationWait + 5*time.Second)
		if held := buffer.Lent() - before; held != 0 {
			t.Errorf("%d buffers are still held", held)
		}
		r.wantMetric(1, "relay_listener_closed_sockets_total", "unregistered")
	})
}

// TestAStrangerWhoDoesNotReadIsNotRead: what it makes us answer stays within
// unregisteredQueue, whoever answers, and reading goes on as soon as it reads.
func TestAStrangerWhoDoesNotReadIsNotRead(t *testing.T) {
	const asked = 4000
	for name, request := range map[string]string{
		"a refusal":               envelope("reportRuntimeAssignmentLogs", `{}`, "c"),
		"an answer of ours":       envelope("echo", `{"x":"`+strings.Repeat("x", 500)+`"}`, "c"),
		"one of the carrier's":    envelope("__typedsocket_setTag", `{"name":"a","payload":1}`, "c"),
		"a method of the carrier": envelope("__typedsocket_x", `{}`, "c"),
	} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			c := r.upgraded()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for range asked {
					if _, err := io.WriteString(c, frame(0x81, uint64(len(request)), request)); err != nil {
						return
					}
				}
			}()
			time.Sleep(10 * time.Second)
			sock := r.sockets()[0].Socket()
			stats := sock.Stats()
			// One answer may come after the bound was met.
			if stats.QueuedOwn > unregisteredQueue+8<<10 || stats.QueuedOwn < unregisteredQueue/2 {
				t.Errorf("%s: %d bytes of answers are queued", name, stats.QueuedOwn)
			}
			if stats.FramesIn >= asked {
				t.Errorf("%s: all of it was read", name)
			}
			answers := 0
			for answers < asked {
				c.message()
				answers++
			}
			<-ended
			if got := sock.Stats().FramesIn; got != asked {
				t.Errorf("%s: %d requests were read, %d answered", name, got, answers)
			}
		})
	}
}

// It still has no more than its 30 s; and with a role it is read again.
func TestAStrangerWhoNeverReadsExpires(t *testing.T) {
	for _, bind := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			c := r.upgraded()
			request := envelope("echo", `{}`, "c")
			go io.WriteString(c, strings.Repeat(frame(0x81, uint64(len(request)), request), 1000))
			time.Sleep(10 * time.Second)
			conn := r.sockets()[0]
			stuck := conn.Socket().Stats().FramesIn
			if bind {
				if err := conn.BindNode("node-a"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if got := conn.Socket().Stats().FramesIn; got != 1000 || stuck == 1000 {
					t.Errorf("%d frames were read before it had a role, %d after", stuck, got)
				}
				return
			}
			time.Sleep(registrationWait)
			r.wantMetric(1, "relay_listener_closed_sockets_total", "unregistered")
			if open := r.Status().(Status).Sockets.Open; open != 0 {
				t.Errorf("%d places are still taken", open)
			}
		})
	}
}
