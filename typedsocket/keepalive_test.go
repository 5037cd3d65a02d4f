package typedsocket

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"pgregory.net/rapid"
)

func TestKeepaliveDecisions(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		name       string
		k          keepalive
		now, heard time.Duration
		want       verdict
	}{
		{"before the first ping", keepalive{nextPing: 7 * s}, 0, 0, verdict{wait: 7 * s}},
		{"first ping", keepalive{nextPing: 7 * s}, 7 * s, 6 * s, verdict{ping: true, wait: 20 * s}},
		{"answered", keepalive{nextPing: 27 * s, waiting: true, unanswered: 7 * s}, 8 * s, 8 * s, verdict{wait: 19 * s}},
		{"second ping of a silence", keepalive{nextPing: 27 * s, waiting: true, unanswered: 7 * s}, 27 * s, 5 * s, verdict{ping: true, wait: 20 * s}},
		{"wakes at the end of the silence", keepalive{nextPing: 67 * s, waiting: true, unanswered: 7 * s}, 47 * s, 5 * s, verdict{wait: 18 * s}},
		{"silent for 60 s", keepalive{nextPing: 67 * s, waiting: true, unanswered: 7 * s}, 65 * s, 5 * s, verdict{dead: true}},
		{"silent for 59.9 s", keepalive{nextPing: 67 * s, waiting: true, unanswered: 7 * s}, 65*s - 1, 5 * s, verdict{wait: 1}},
		{"no ping could leave for two minutes", keepalive{nextPing: 20 * s}, 120 * s, 5 * s, verdict{ping: true, wait: 20 * s}},
		{"nor after an answered one", keepalive{nextPing: 20 * s, waiting: true}, 120 * s, 5 * s, verdict{ping: true, wait: 20 * s}},
		{"then it has 40 s", keepalive{nextPing: 160 * s, waiting: true, unanswered: 120 * s}, 160*s - 1, 5 * s, verdict{wait: 1}},
		{"and no more", keepalive{nextPing: 180 * s, waiting: true, unanswered: 120 * s}, 160 * s, 5 * s, verdict{dead: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.k.step(c.now, c.heard); got != c.want {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestKeepaliveAgreesWithTheRule runs random peers against the rule itself: a
// peer whose longest silence is below 60 s never dies, one that falls silent
// for good dies between 60 s and 60 s plus one ping period and the grace.
func TestKeepaliveAgreesWithTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := keepalive{nextPing: time.Duration(rapid.Int64Range(0, int64(PingEvery)).Draw(t, "phase"))}
		var now, heard time.Duration
		for range rapid.IntRange(0, 50).Draw(t, "messages") {
			next := now + time.Duration(rapid.Int64Range(1, int64(DeadAfter)-1).Draw(t, "silence"))
			for now < next {
				v := k.step(now, heard)
				if v.dead {
					t.Fatalf("dead at %s although heard at %s", now, heard)
				}
				if v.wait <= 0 {
					t.Fatalf("wait of %s", v.wait)
				}
				now = min(next, now+v.wait)
			}
			heard = now
		}
		for range 100 {
			v := k.step(now, heard)
			if v.dead {
				if silence := now - heard; silence < DeadAfter || silence > DeadAfter+PingEvery+pingGrace {
					t.Fatalf("dead after a silence of %s", silence)
				}
				return
			}
			now += v.wait
		}
		t.Fatal("never dead")
	})
}

// deafConn hides what arrives after a while: a peer that has vanished.
type deafConn struct {
	net.Conn
	from time.Time
}

func (c *deafConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || time.Now().Before(c.from) {
			return n, err
		}
	}
}

// B023: a peer of which nothing arrives any more ends the socket with a typed error,
// and the calls that wait hear of it.
func TestB023_AVanishedPeerEndsTheSocketWithATypedError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		born := time.Now()
		c, _ := newRig(t, Config{Peer: "client"}).connect(Config{Peer: "server"}, func(c, s net.Conn) (net.Conn, net.Conn) {
			return &deafConn{c, born.Add(10 * time.Minute)}, s
		})
		time.Sleep(10*time.Minute - time.Second)
		if err := c.Err(); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, c, CloseSilent, false)
		if d := time.Since(born.Add(10 * time.Minute)); d < 40*time.Second || d > 63*time.Second {
			t.Fatalf("ended %s after the peer vanished", d)
		}
	})
}

// B019: a peer that reads and never answers a ping is taken for dead.
func TestB019_APeerThatReadsButNeverAnswersIsDead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, Config{Peer: "mute"})
		conn, err := r.listener.dial(nil)(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			b := make([]byte, 4096)
			for {
				if _, err := conn.Read(b); err != nil {
					return
				}
			}
		}()
		io.WriteString(conn, upgradeRequest)
		s := <-r.accepted
		start := time.Now()
		wantEnd(t, s, CloseSilent, false)
		if d := time.Since(start); d < 59*time.Second || d > 80*time.Second {
			t.Fatalf("dead after %s", d)
		}
		if n := s.Stats().Pings; n < 2 || n > 4 {
			t.Fatalf("%d pings", n)
		}
	})
}

// TestADayOfPingsRetriesAndSilences lives 24 hours in fake time: an idle
// socket stands, a caller that is told to retry gets through, a silent
// handler costs its own call alone.
func TestADayOfPingsRetriesAndSilences(t *testing.T) {
	bubble(t, func(t *testing.T) {
		turn := 0
		c, s := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) {
			turn++
			switch turn % 3 {
			case 0:
				r.Drop()
			case 1:
				retryAfter(r, `{"waitForMs":60000,"reason":"busy"}`)
			default:
				echo(r)
			}
		})})
		timeouts := 0
		for start := time.Now(); time.Since(start) < 24*time.Hour; time.Sleep(7 * time.Minute) {
			if a, err := c.Call(context.Background(), "m", []byte(`{}`), CallOptions{}); err == nil {
				a.Release()
			} else {
				timeouts++
			}
		}
		synctest.Wait()
		if c.Err() != nil || s.Err() != nil {
			t.Fatalf("ended: %v, %v", c.Err(), s.Err())
		}
		// Every 20 s each side pings, give or take one for the random phase.
		for _, st := range []Stats{c.Stats(), s.Stats()} {
			if st.Pings < 24*180-1 || st.Pings > 24*180+40 {
				t.Fatalf("%d pings in a day", st.Pings)
			}
			if st.Pending != 0 || st.Serving != 0 || st.QueuedOwn != 0 || st.QueuedFlow != 0 {
				t.Fatalf("left over after a day: %+v", st)
			}
		}
		if timeouts == 0 || uint64(timeouts) != c.Stats().Timeouts {
			t.Fatalf("%d timeouts, counted %d", timeouts, c.Stats().Timeouts)
		}
	})
}

// B020: a connection that would be cut after 55 s without a byte lives a day.
func TestB020_AMiddleboxThatCutsIdleConnectionsIsKeptBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, s := newRig(t, Config{Peer: "client"}).connect(Config{Peer: "server"}, func(c, s net.Conn) (net.Conn, net.Conn) {
			return newIdleCut(c, 55*time.Second), s
		})
		time.Sleep(24 * time.Hour)
		if c.Err() != nil || s.Err() != nil {
			t.Fatalf("cut: %v, %v", c.Err(), s.Err())
		}
	})
}

// idleCut closes a connection on which nothing was read for a while.
type idleCut struct {
	net.Conn
	after time.Duration
	timer *time.Timer
}

func newIdleCut(c net.Conn, after time.Duration) *idleCut {
	return &idleCut{c, after, time.AfterFunc(after, func() { c.Close() })}
}

func (c *idleCut) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.timer.Reset(c.after)
	if err != nil {
		c.timer.Stop()
	}
	return n, err
}

func (c *idleCut) Close() error { c.timer.Stop(); return c.Conn.Close() }

// B041: while megabytes wait for a slow peer, its pings are answered and it is not
// taken for dead.
func TestB041_PongsGoBeforeBulk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pongs := 0
		r := newRig(t, Config{Peer: "slow", Limits: Limits{Own: 1 << 30, Flow: 1 << 30, Flows: 1 << 30}})
		dial := r.listener.dial(func(c, s net.Conn) (net.Conn, net.Conn) { return &slowConn{c, 128 << 10}, s })
		peer := rawOver(t, dial, func() { pongs++ })
		s := <-r.accepted
		for range 75 { // ten minutes' worth at 128 KiB/s
			b := newNull()
			b.Append(make([]byte, 1<<20))
			if err := s.push("bulk", itemOf(b)); err != nil {
				t.Fatal(err)
			}
		}
		received := 0
		go func() {
			for {
				_, p, err := peer.Read(context.Background())
				if err != nil {
					return
				}
				received += len(p)
			}
		}()
		for range 100 {
			start := time.Now()
			if err := peer.Ping(context.Background()); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Fatalf("a pong took %s behind bulk", d)
			}
			time.Sleep(6 * time.Second)
		}
		if received < 75<<20 || s.Err() != nil {
			t.Fatalf("received %d bytes, socket %v", received, s.Err())
		}
		peer.CloseNow()
		<-s.Done()
	})
}

// B029: a handshake that takes 3 s for each leg succeeds.
func TestB029_ASlowHandshakeIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, s := newRig(t, Config{Peer: "client", Handler: handlers{"echo": echo}}).connect(Config{Peer: "server"}, func(c, s net.Conn) (net.Conn, net.Conn) {
			return &lateConn{c, 3 * time.Second}, &lateConn{s, 3 * time.Second}
		})
		if got := call(t, c, "echo", `{"a":1}`); got != `{"a":1}` {
			t.Fatal(got)
		}
		c.Close(CloseNormal, "")
		<-s.Done()
		time.Sleep(time.Minute) // readers leave late connections late
	})
}

// lateConn delivers what it reads after a delay.
type lateConn struct {
	net.Conn
	by time.Duration
}

func (c *lateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	time.Sleep(c.by)
	return n, err
}

func rawOver(t testing.TB, dial func(context.Context, string, string) (net.Conn, error), pong func()) *websocket.Conn {
	client, stop := httpOver(dial)
	peer, _, err := websocket.Dial(context.Background(), "ws://relay/", &websocket.DialOptions{HTTPClient: client,
		OnPongReceived: func(context.Context, []byte) { pong() }})
	if err != nil {
		t.Fatal(err)
	}
	peer.SetReadLimit(-1)
	t.Cleanup(func() { peer.CloseNow(); stop() })
	return peer
}
