package operator

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// cappedListener bounds the connections that are open at once. One above every
// bound is closed as soon as it is accepted: left in the backlog it would wait
// without a deadline.
type cappedListener struct {
	net.Listener
	o *Operator
}

func (c *cappedListener) Accept() (net.Conn, error) {
	m := c.o.metrics
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		// One goroutine accepts, and only closing makes the number smaller.
		open := m.connections.Value()
		if open >= maxConnections+reserve {
			conn.Close()
			m.refusedConnections.Inc()
			continue
		}
		m.connections.Add(1)
		return &countedConn{Conn: conn, surplus: open >= maxConnections, closed: func() { m.connections.Add(-1) }}, nil
	}
}

// countedConn tells once that it was closed.
type countedConn struct {
	net.Conn
	surplus bool // came when there were maxConnections
	once    sync.Once
	closed  func()
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.closed)
	return err
}

// surplusKey marks the context of requests on surplus connections.
type surplusKey struct{}

// markSurplus is http.Server.ConnContext.
func markSurplus(ctx context.Context, c net.Conn) context.Context {
	if counted, ok := c.(*countedConn); ok && counted.surplus {
		return context.WithValue(ctx, surplusKey{}, true)
	}
	return ctx
}

func isSurplus(r *http.Request) bool { return r.Context().Value(surplusKey{}) != nil }
