package listener

import (
	"net"
	"sync"

	"serve.zone/relay/duty/field"
)

// cappedListener bounds the connections that are open at once. One above the
// bound is closed as soon as it is accepted: left in the backlog it would wait
// without a deadline.
type cappedListener struct {
	net.Listener
	l *Listener
}

func (c *cappedListener) Accept() (net.Conn, error) {
	m := c.l.metrics
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		// One goroutine accepts, and only closing makes the number smaller.
		if m.connections.Value() >= maxConnections {
			conn.Close()
			m.refusedConnections.Inc()
			c.l.sayFull(EventConnectionsFull, field.Limit(maxConnections))
			continue
		}
		m.connections.Add(1)
		return &countedConn{Conn: conn, closed: func() { m.connections.Add(-1) }}, nil
	}
}

// countedConn tells once that it was closed.
type countedConn struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.closed)
	return err
}
