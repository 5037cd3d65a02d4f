package simulate

import (
	"net"
	"sync"
	"time"
)

// gate is a connection whose owner can stop reading it, as a process that hangs
// does: what arrives stays in the network.
type gate struct {
	net.Conn
	mu          sync.Mutex
	moved       *sync.Cond
	shut        bool
	closed      bool
	interrupted bool // by a read deadline that has passed
}

func newGate(c net.Conn) *gate {
	g := &gate{Conn: c}
	g.moved = sync.NewCond(&g.mu)
	return g
}

// stop makes reads wait, the one in progress too.
func (g *gate) stop() { g.set(func() { g.shut = true }) }

// resume lets reads go on.
func (g *gate) resume() { g.set(func() { g.shut = false }) }

func (g *gate) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	g.moved.Broadcast()
}

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut && !g.closed && !g.interrupted {
		g.moved.Wait()
	}
}

func (g *gate) Read(p []byte) (int, error) {
	g.pass()
	n, err := g.Conn.Read(p)
	g.pass()
	return n, err
}

func (g *gate) Close() error {
	g.set(func() { g.closed = true })
	return g.Conn.Close()
}

// SetReadDeadline lets a reader that waits here notice a deadline in the past,
// with which both net/http and the carrier interrupt a read.
func (g *gate) SetReadDeadline(t time.Time) error {
	g.set(func() { g.interrupted = !t.IsZero() && !t.After(time.Now()) })
	return g.Conn.SetReadDeadline(t)
}

func (g *gate) SetDeadline(t time.Time) error {
	g.set(func() { g.interrupted = !t.IsZero() && !t.After(time.Now()) })
	return g.Conn.SetDeadline(t)
}
