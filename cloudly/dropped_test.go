package cloudly

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/typedsocket"
)

// stalling is a connection on which Cloudly reads only while it is not stalled. A
// read that is under way when it stalls still ends.
type stalling struct {
	net.Conn
	stall chan struct{} // has room for one: who puts it in stalls
}

func (c *stalling) Read(p []byte) (int, error) {
	c.stall <- struct{}{}
	<-c.stall
	return c.Conn.Read(p)
}

// R20: the socket that stays open after an end of custody carries nothing that was
// queued for nodes before it, whatever the duties left there; what the relay itself
// has to say goes on.
func TestR20_ASocketThatStaysCarriesNothingOfTheOldCustody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		stall := make(chan struct{}, 1)
		w := newWorld(t, func(_ *Config, w *world) {
			w.wrap = func(c net.Conn) net.Conn { return &stalling{c, stall} }
		})
		w.wantState("registered")
		held := make(chan *typedsocket.Request, 1)
		w.on(registration, func(n int, r *typedsocket.Request) bool {
			if n == 2 {
				held <- r
			}
			return n == 2
		})
		w.change(1)
		renewal := <-held
		synctest.Wait()

		stall <- struct{}{}
		sock, outcomes := w.live, make(chan error, 8)
		call := func(method, flow string) {
			go func() {
				a, err := sock.Call(context.Background(), method, nil, typedsocket.CallOptions{Flow: flow})
				if err == nil {
					a.Release()
				}
				outcomes <- err
			}()
			synctest.Wait()
		}
		call("first", "")  // taken by the read that is under way
		call("second", "") // the writer is stalled in it
		for range 3 {
			call("reportOfANode", "node-a")
		}
		if s := sock.Stats(); s.QueuedFlow == 0 {
			t.Fatalf("%+v", s)
		}
		w.heard()
		renewal.Refuse("relay-cluster-not-enabled: nobody enabled it", nil)
		w.wantHeard("custody relay-cluster-not-enabled", "lost relay-cluster-not-enabled")
		w.wantState("refused")
		if s := sock.Stats(); s.QueuedFlow != 0 || s.Dropped != 3 {
			t.Errorf("%+v", s)
		}
		<-stall
		dropped := 0
		for range 5 {
			if err := <-outcomes; errors.Is(err, typedsocket.ErrDropped) {
				dropped++
			}
		}
		if got := w.of("reportOfANode"); dropped != 3 || len(got) != 0 {
			t.Errorf("%d calls were dropped, Cloudly has seen %v", dropped, got)
		}
		if n := len(w.of("second")); n != 1 {
			t.Errorf("the relay's own call was seen %d times", n)
		}

		time.Sleep(10 * time.Second)
		w.on(registration, nil)
		if err := w.push(documentOf(testOrigin)); err != nil {
			t.Fatal(err)
		}
		w.wantState("registered")
		if n, _ := w.opened(); n != 1 {
			t.Errorf("%d sockets", n)
		}
	})
}
