package cloudly

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/typedsocket"
)

// mutable is a connection on which what is written, and its end, can be lost.
type mutable struct {
	net.Conn
	mute *atomic.Bool
}

func (m *mutable) Write(p []byte) (int, error) {
	if m.mute.Load() {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

func (m *mutable) Close() error {
	if m.mute.Load() {
		return nil
	}
	return m.Conn.Close()
}

// B010, B019, B023: a peer that still reads, and of which nothing is heard any
// more, not even an answer to a ping. The status turns within a minute, and the
// session comes back when the peer does.
func TestB010_APeerOfWhichNothingIsHeard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mute atomic.Bool
		w := newWorld(t, func(_ *Config, w *world) {
			w.wrap = func(c net.Conn) net.Conn { return &mutable{c, &mute} }
		})
		w.wantState("registered")
		w.heard()
		time.Sleep(time.Hour)
		mute.Store(true)
		time.Sleep(typedsocket.DeadAfter + time.Second)
		if got := w.check(CheckSession); got != "failing socket-lost" && got != "failing dial-failed" {
			t.Fatalf("check %s", got)
		}
		w.wantHeard("lost socket-lost")
		time.Sleep(time.Hour)
		if n := len(w.dialled()); n < 40 || n > 120 {
			t.Fatalf("%d dials in an hour", n)
		}
		mute.Store(false)
		time.Sleep(longestDelay + 16*time.Second)
		w.wantState("registered")
	})
}

// idleCut closes a connection that carries nothing for a time, as a middlebox does.
type idleCut struct {
	net.Conn
	timer *time.Timer
	limit time.Duration
}

func (c *idleCut) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.timer.Reset(c.limit)
	return n, err
}

func (c *idleCut) Write(p []byte) (int, error) {
	c.timer.Reset(c.limit)
	return c.Conn.Write(p)
}

func (c *idleCut) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}

// B020: a middlebox that cuts after 55 s of silence cuts nothing.
func TestB020_AMiddleboxThatCutsIdleConnections(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, func(_ *Config, w *world) {
			w.wrap = func(c net.Conn) net.Conn {
				return &idleCut{c, time.AfterFunc(55*time.Second, func() { c.Close() }), 55 * time.Second}
			}
		})
		time.Sleep(24 * time.Hour)
		w.wantState("registered")
		w.wantSequences(0)
	})
}

// B005: whatever a dial is stuck in, it ends, and another follows.
func TestB005_ADialThatHangs(t *testing.T) {
	for name, hang := range map[string]func(net.Conn){
		"reads and says nothing": func(c net.Conn) { io.Copy(io.Discard, c) },
		"does not even read":     func(c net.Conn) {},
		"stops in the header": func(c net.Conn) {
			go io.Copy(io.Discard, c)
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: web")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, func(_ *Config, w *world) { w.onConn = hang })
				time.Sleep(time.Hour)
				dials := len(w.dialled())
				if dials < 40 || dials > 100 {
					t.Fatalf("%d dials in an hour", dials)
				}
				w.set(func() { w.onConn = nil })
				time.Sleep(longestDelay + 16*time.Second)
				w.wantState("registered")
			})
		})
	}
}
