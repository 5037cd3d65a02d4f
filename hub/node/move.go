package node

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/tunnel"
)

// mover takes a connection to another port of the machine and back. It is the one way to
// have QUIC begin anew on a path that has become narrower, at both ends: here because the
// path is another one, at the hub because the node's address is. No packet that is larger
// than every path carries is sent then, until QUIC has proved anew that it arrives.
type mover struct {
	client *Client
	conn   *quic.Conn
	hub    netip.Addr
	asked  chan struct{} // has room for one

	// Two sockets are enough for any number of moves. A transport cannot be closed while
	// the connection stands.
	from, to *quic.Transport
	socket   net.PacketConn // to's, nil until the first move
	path     *quic.Path     // the one in use, nil for the first
}

func newMover(c *Client, conn *quic.Conn, hub netip.Addr) *mover {
	return &mover{client: c, conn: conn, hub: hub, asked: make(chan struct{}, 1)}
}

// ask has the connection moved soon. It does not wait.
func (m *mover) ask() {
	select {
	case m.asked <- struct{}{}:
	default:
	}
}

// run moves the connection whenever that is asked, until the connection ends.
func (m *mover) run() {
	ctx := m.conn.Context()
	pause := time.NewTimer(moveEvery)
	defer pause.Stop()
	for {
		select {
		case <-m.asked:
		case <-ctx.Done():
			return
		}
		if err := m.move(ctx); err != nil {
			m.client.log.Debug("node-move-failed", field.Error(err))
		}
		pause.Reset(moveEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		select {
		case <-m.asked: // what was found out meanwhile is found out again if it holds still
		default:
		}
	}
}

// move moves the connection once. It stays where it is unless the other port leads to the
// hub.
func (m *mover) move(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, moveWait)
	defer cancel()
	if m.to == nil {
		socket, err := m.client.listen(ctx, m.hub)
		if err != nil {
			return err
		}
		m.socket, m.to = socket, tunnel.NodeTransport(socket)
	}
	path, err := m.conn.AddPath(m.to)
	if err != nil {
		return err
	}
	if err = path.Probe(ctx); err == nil {
		err = path.Switch()
	}
	if err != nil {
		path.Close()
		return err
	}
	if m.path != nil {
		m.path.Close() // gives its connection id back
	}
	m.path = path
	m.from, m.to = m.to, m.from
	m.client.traffic.narrowings.Add(1)
	m.client.log.Warn("node-path-narrower", field.Count(m.client.traffic.narrowings.Load()))
	return nil
}

// close closes the second socket behind the connection. The first one is closed by whoever
// opened it.
func (m *mover) close() {
	if m.socket == nil {
		return
	}
	for _, t := range []*quic.Transport{m.from, m.to} {
		t.Close()
	}
	m.socket.Close()
}
