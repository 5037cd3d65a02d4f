package endpoint

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty"
)

// queue is a listener with connections that wait.
type queue struct{ conns []net.Conn }

func (q *queue) Accept() (net.Conn, error) {
	if len(q.conns) == 0 {
		return nil, net.ErrClosed
	}
	c := q.conns[0]
	q.conns = q.conns[1:]
	return c, nil
}
func (q *queue) Close() error   { return nil }
func (q *queue) Addr() net.Addr { return &net.IPAddr{} }

func TestCapBoundsMarksAndCounts(t *testing.T) {
	waiting := &queue{}
	for range 5 {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		waiting.conns = append(waiting.conns, a)
	}
	full := 0
	c := &Cap{Listener: waiting, Limit: 2, Reserve: 1, Open: new(duty.Gauge), Refused: new(duty.Counter), Full: func() { full++ }}
	var taken []*Conn
	for {
		conn, err := c.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				t.Fatal(err)
			}
			break
		}
		taken = append(taken, conn.(*Conn))
	}
	if len(taken) != 3 || taken[1].Surplus || !taken[2].Surplus || c.Open.Value() != 3 || c.Refused.Value() != 2 || full != 2 {
		t.Fatalf("%d taken, %d open, %d refused, %d told", len(taken), c.Open.Value(), c.Refused.Value(), full)
	}
	for range 2 {
		taken[0].Close()
	}
	if c.Open.Value() != 2 {
		t.Errorf("a connection that was closed twice counts as two: %d open", c.Open.Value())
	}
}

func TestRestWaitsForAllAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work
		if !w.Rest(t.Context()) {
			t.Error("nothing runs, and it does not rest")
		}
		w.Begin()
		w.Begin()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if w.Rest(ctx) {
			t.Error("it rests while two run")
		}
		time.AfterFunc(time.Second, w.End)
		time.AfterFunc(2*time.Second, w.End)
		start := time.Now()
		if !w.Rest(t.Context()) || time.Since(start) != 2*time.Second {
			t.Errorf("rested after %s", time.Since(start))
		}
	})
}
