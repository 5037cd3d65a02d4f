package carriertest

import (
	"context"
	"net"
	"sync"
)

// Network is one address inside the process: a net.Listener whose connections
// come from Dial and Connect. It is safe for concurrent use.
type Network struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewNetwork returns a network on which nobody accepts yet.
func NewNetwork() *Network {
	return &Network{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept returns the far end of the next connection, or net.ErrClosed.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

// Close ends accepting and dialling; connections that stand live on.
func (n *Network) Close() error { n.once.Do(func() { close(n.done) }); return nil }

// Addr returns an address that means nothing.
func (n *Network) Addr() net.Addr { return &net.IPAddr{} }

// Dial connects by a new pipe. It has the form of typedsocket.Dial.Net.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	return n.Connect(ctx, client, server)
}

// Connect hands server to Accept and returns client, for a test that made the
// two ends itself.
func (n *Network) Connect(ctx context.Context, client, server net.Conn) (net.Conn, error) {
	select {
	case n.conns <- server:
		return client, nil
	case <-n.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
