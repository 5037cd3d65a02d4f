package endpoint

import (
	"net"
	"sync"

	"serve.zone/relay/duty"
)

// Cap bounds the connections of a listener that are open at once. One above every
// bound is closed as soon as it is accepted: left in the backlog it would wait
// without a deadline. One goroutine accepts.
type Cap struct {
	net.Listener
	// Limit is how many may be open, Reserve how many more are let in and marked
	// as surplus.
	Limit, Reserve int64
	Open           *duty.Gauge   // connections, of this listener alone
	Refused        *duty.Counter // connections that were closed
	Full           func()        // is told of each of those; nil for nobody
}

// Accept returns the next connection, a *Conn.
func (c *Cap) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		// Only closing makes the number smaller.
		open := c.Open.Value()
		if open >= c.Limit+c.Reserve {
			conn.Close()
			c.Refused.Inc()
			if c.Full != nil {
				c.Full()
			}
			continue
		}
		c.Open.Add(1)
		return &Conn{Conn: conn, Surplus: open >= c.Limit, open: c.Open}, nil
	}
}

// Conn is a connection that is counted until it is closed.
type Conn struct {
	net.Conn
	Surplus bool // came when as many as Limit were open
	open    *duty.Gauge
	once    sync.Once
}

// Close closes the connection and gives its place back, once.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.open.Add(-1) })
	return err
}
