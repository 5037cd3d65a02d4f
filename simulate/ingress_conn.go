package simulate

import (
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// clientConn is a connection of a client. It ends when no byte has passed for a
// while in either direction, and counts what passes once it has a hostname.
type clientConn struct {
	net.Conn // that is read and written: the client's, or TLS over it
	under    net.Conn
	w        *web
	root     *clientConn // that the web knows
	hostname string
	idle     *time.Timer
}

func newClientConn(conn net.Conn, w *web) *clientConn {
	c := &clientConn{Conn: conn, w: w, under: conn}
	c.root = c
	c.idle = time.AfterFunc(clientIdle, func() { conn.Close() })
	return c
}

// over returns the connection as it is seen above TLS.
func (c *clientConn) over(secured *tls.Conn, hostname string) *clientConn {
	return &clientConn{Conn: secured, w: c.w, root: c, hostname: hostname, idle: c.idle, under: c.under}
}

func (c *clientConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.passed(Traffic{BytesIn: int64(n)}, n)
	return n, err
}

func (c *clientConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.passed(Traffic{BytesOut: int64(n)}, n)
	return n, err
}

func (c *clientConn) passed(t Traffic, n int) {
	if n == 0 {
		return
	}
	c.idle.Reset(clientIdle)
	if c.hostname != "" {
		c.w.i.count(c.hostname, t)
	}
}

// CloseWrite tells the client that nothing follows, as far as its connection can.
func (c *clientConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close ends the connection and frees its place.
func (c *clientConn) Close() error {
	c.idle.Stop()
	c.w.mu.Lock()
	delete(c.w.conns, c.root)
	c.w.mu.Unlock()
	return c.Conn.Close()
}
