package escrow_test

import (
	"context"
	"net"
	"sync"

	"serve.zone/relay/simulate"
)

// gate keeps back what a node sends while it is shut; what arrives is read and judged all
// the same. It has to be open again before the silence makes the node count as gone. The
// zero gate is open.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil while the gate is open
}

// before puts the gate before the connections of a node.
func (g *gate) before(cfg *simulate.PalletConfig) {
	dial := cfg.Dial
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gated{Conn: conn, gate: g, ended: make(chan struct{})}, nil
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.closed)
	g.closed = nil
}

// gated is a connection behind a gate.
type gated struct {
	net.Conn
	gate  *gate
	once  sync.Once
	ended chan struct{} // closed with the connection, which ends a write that waits
}

func (c *gated) Write(p []byte) (int, error) {
	c.gate.mu.Lock()
	closed := c.gate.closed
	c.gate.mu.Unlock()
	if closed != nil {
		select {
		case <-closed:
		case <-c.ended:
		}
	}
	return c.Conn.Write(p)
}

func (c *gated) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}
