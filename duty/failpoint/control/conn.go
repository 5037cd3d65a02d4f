package control

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// errReset is what a connection meets that was cut.
var errReset = &net.OpError{Op: "read or write", Net: "tcp", Err: os.NewSyscallError("failpoint", syscall.ECONNRESET)}

// conn is a connection that can be stalled and cut.
type conn struct {
	net.Conn
	gone func() // forgets it; called once

	writing sync.Mutex // held while a write may end in a cut

	mu      sync.Mutex // guards what follows
	moved   chan struct{}
	until   time.Time // it is stalled until then
	left    int       // bytes until the cut; -1 for none
	read    time.Time // deadlines
	write   time.Time
	cut     bool
	closed  bool
	leaving sync.Once
}

// Conn returns a connection as one of a name.
func (p *Points) Conn(name string, inner net.Conn) net.Conn {
	c := &conn{Conn: inner, moved: make(chan struct{}), left: -1}
	c.gone = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.conns[name] = slices.DeleteFunc(p.conns[name], func(other *conn) bool { return other == c })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[name] = append(p.conns[name], c)
	return c
}

// Listener returns a listener whose connections are of a name.
func (p *Points) Listener(name string, inner net.Listener) net.Listener {
	return &listener{inner, p, name}
}

type listener struct {
	net.Listener
	points *Points
	name   string
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.points.Conn(l.name, c), nil
}

// change changes something that a wait depends on.
func (c *conn) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.moved)
	c.moved = make(chan struct{})
}

// stall has reads and writes wait until a time; the zero time is none.
func (c *conn) stall(until time.Time) { c.change(func() { c.until = until }) }

// pass waits while the connection is stalled.
func (c *conn) pass(deadline *time.Time) error {
	for {
		c.mu.Lock()
		now := time.Now()
		var err error
		switch {
		case c.cut:
			err = errReset
		case c.closed:
			err = net.ErrClosed
		case !deadline.IsZero() && !now.Before(*deadline):
			err = os.ErrDeadlineExceeded
		}
		wait := c.until.Sub(now)
		if !deadline.IsZero() {
			wait = min(wait, deadline.Sub(now))
		}
		moved := c.moved
		stalled := now.Before(c.until)
		c.mu.Unlock()
		if err != nil || !stalled {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-moved:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (c *conn) Read(b []byte) (int, error) {
	if err := c.pass(&c.read); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	// What came meanwhile waits too. It is there, whatever became of the deadline.
	if late := c.pass(&c.read); late != nil && (n == 0 || !errors.Is(late, os.ErrDeadlineExceeded)) {
		return 0, late
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.pass(&c.write); err != nil {
		return 0, err
	}
	c.mu.Lock()
	left := c.left
	c.mu.Unlock()
	if left < 0 || left > len(b) {
		n, err := c.Conn.Write(b)
		c.mu.Lock()
		if c.left > 0 {
			c.left = max(c.left-n, 1)
		}
		if err != nil && c.cut {
			err = errReset
		}
		c.mu.Unlock()
		return n, err
	}
	n, err := c.Conn.Write(b[:left])
	c.sever()
	if err == nil {
		err = errReset
	}
	return n, err
}

// cutAfter breaks the connection when so many more bytes were written.
func (c *conn) cutAfter(bytes int) {
	if bytes == 0 {
		c.sever()
		return
	}
	c.change(func() { c.left = bytes })
}

// mend takes cutAfter back.
func (c *conn) mend() { c.change(func() { c.left = -1 }) }

// sever breaks the connection by a reset.
func (c *conn) sever() {
	c.change(func() { c.cut = true })
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.leaving.Do(c.gone)
	c.Conn.Close()
}

func (c *conn) Close() error {
	c.change(func() { c.closed = true })
	c.leaving.Do(c.gone)
	return c.Conn.Close()
}

func (c *conn) SetDeadline(t time.Time) error {
	c.change(func() { c.read, c.write = t, t })
	return c.Conn.SetDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.change(func() { c.read = t })
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.change(func() { c.write = t })
	return c.Conn.SetWriteDeadline(t)
}
