package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
	"serve.zone/relay/hub/tunnel"
)

// between is somebody between nodes and a hub who ends QUIC and TLS of both, and passes on
// whatever is said on the stream and in datagrams: with his own certificate, which no node
// verifies.
type between struct {
	impostor
	upstream netip.AddrPort
	ctx      context.Context
	cancel   context.CancelFunc
	all      sync.WaitGroup

	mu      sync.Mutex
	conns   int
	toHub   []byte // all that was said on streams, of the last connection
	fromHub []byte
}

// impostor listens as a hub does, under a key that is no hub's.
type impostor struct {
	at        netip.AddrPort
	key       tunnel.PrivateKey
	socket    net.PacketConn
	transport *quic.Transport
	listener  *quic.Listener
}

func impersonate(t *testing.T) (i impostor) {
	t.Helper()
	certificate, err := tunnel.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	if i.key, err = tunnel.GeneratePrivateKey(zeros{}); err != nil {
		t.Fatal(err)
	}
	if i.socket, err = net.ListenPacket("udp4", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	i.at, i.transport = i.socket.LocalAddr().(*net.UDPAddr).AddrPort(), tunnel.HubTransport(i.socket, i.key)
	if i.listener, err = i.transport.Listen(tunnel.HubTLS(certificate, nil), tunnel.HubQUIC()); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *impostor) close() {
	i.listener.Close()
	i.transport.Close()
	i.socket.Close()
}

// stands puts somebody between nodes and a hub at an address.
func stands(t *testing.T, upstream netip.AddrPort) *between {
	t.Helper()
	b := &between{impostor: impersonate(t), upstream: upstream}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.all.Go(func() {
		for {
			conn, err := b.listener.Accept(b.ctx)
			if err != nil {
				return
			}
			b.all.Go(func() { b.carry(conn) })
		}
	})
	t.Cleanup(func() {
		b.cancel()
		b.close()
		b.all.Wait()
	})
	return b
}

// zeros is a source of a key that nobody needs to guess.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i)
	}
	return len(b), nil
}

// carry passes on one connection until either end closes it, and passes on with what.
func (b *between) carry(node *quic.Conn) {
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer socket.Close()
	transport := tunnel.NodeTransport(socket)
	defer transport.Close()
	hub, err := transport.Dial(b.ctx, net.UDPAddrFromAddrPort(b.upstream), tunnel.NodeTLS(), tunnel.NodeQUIC())
	if err != nil {
		node.CloseWithError(0, "")
		return
	}
	b.mu.Lock()
	b.conns++
	b.toHub, b.fromHub = nil, nil
	b.mu.Unlock()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { b.streams(node, hub) })
	for _, x := range [][2]*quic.Conn{{node, hub}, {hub, node}} {
		all.Go(func() {
			for {
				datagram, err := x[0].ReceiveDatagram(b.ctx)
				if err != nil {
					break
				}
				x[1].SendDatagram(datagram)
			}
			select {
			case <-x[0].Context().Done():
			case <-b.ctx.Done():
			}
			code, _ := tunnel.PeerClose(context.Cause(x[0].Context()))
			x[1].CloseWithError(code.QUIC(), code.String())
			x[0].CloseWithError(0, "")
		})
	}
}

func (b *between) streams(node, hub *quic.Conn) {
	from, err := node.AcceptStream(b.ctx)
	if err != nil {
		return
	}
	to, err := hub.OpenStreamSync(b.ctx)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { io.Copy(to, io.TeeReader(from, noted{b, &b.toHub})) })
	both.Go(func() { io.Copy(from, io.TeeReader(to, noted{b, &b.fromHub})) })
	both.Wait()
}

// noted keeps what was said.
type noted struct {
	b    *between
	into *[]byte
}

func (n noted) Write(b []byte) (int, error) {
	n.b.mu.Lock()
	defer n.b.mu.Unlock()
	*n.into = append(*n.into, b...)
	return len(b), nil
}

// said returns what was said on the stream of the last connection, and how many there were.
func (b *between) said() (toHub, fromHub []byte, conns int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]byte(nil), b.toHub...), append([]byte(nil), b.fromHub...), b.conns
}

// unbound exports the same from every session.
func unbound(string, []byte, int) ([]byte, error) { return make([]byte, tunnel.KeySize), nil }

// Whoever ends TLS on the way and passes on the Noise messages is found out by the hub,
// which says so: the handshake is bound to the TLS session of both ends. The same messages
// pass where it is not: it is the binding that fails, and not the one between.
func TestWhoeverEndsTLSOnTheWayIsFoundOut(t *testing.T) {
	c := start(t)
	c.admit()
	c.admit()
	c.grant([2]int{0, 1})
	c.push()
	from, before := c.NextSeq(), c.handshakes("not-authentic")
	way := stands(t, c.hubAddress())
	p, err := c.dialIt(0, func(d *dialling) { d.to = way.at })
	if err == nil {
		err = p.waitSeated(c.Soon())
	}
	if err == nil {
		t.Fatal("a node has a tunnel through somebody who ended its TLS")
	}
	c.wantClosed("the node behind the one between", p, tunnel.CloseHandshake)
	toHub, fromHub, conns := way.said()
	if conns != 1 || len(toHub) < 3+96 || tunnel.FrameKind(toHub[0]) != tunnel.FrameInitiation || len(fromHub) != 0 {
		t.Errorf("%d connections, %d bytes to the hub, %d from it", conns, len(toHub), len(fromHub))
	}
	c.Eventually("the handshake to be counted", func() error {
		if n := c.handshakes("not-authentic"); n != before+1 {
			return fmt.Errorf("%v are, %v were", n, before)
		}
		return nil
	})
	if told := c.WaitEvent("hub-handshake-refused", from); told.Text("reason") != "not-authentic" || told.Text("node") != "" {
		t.Errorf("the event says %v", told.Fields)
	}

	// A message that was seen on the way opens nothing on another connection.
	thief, err := c.dialIt(0, func(d *dialling) { d.upTo = connected })
	if !errors.Is(err, errHalted) {
		t.Fatal(err)
	}
	stream, err := thief.conn.OpenStreamSync(c.Soon())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Write(toHub); err != nil {
		t.Fatal(err)
	}
	c.wantClosed("whoever repeats a message", thief, tunnel.CloseHandshake)

	// A real node says so as well, and has had no tunnel.
	client := c.client(0, way.at)
	c.Eventually("the node to be refused", func() error {
		if s := client.Status(); s.Endings[node.HubHandshake] == 0 {
			return fmt.Errorf("it ended %v", s.Endings)
		}
		return nil
	})
	if s, m := client.Status(), c.shownOf(0); s.Tunnels != 0 || m.Sessions != 0 || m.FromPackets != 0 {
		t.Errorf("the node has had %d tunnels, the hub shows %+v", s.Tunnels, m)
	}
	c.dial(0) // without anybody between
}

// client starts a real node with the key of node n, which dials an address.
func (c *cluster) client(n int, to netip.AddrPort) *node.Client {
	c.t.Helper()
	hubKey, err := node.ParsePublicKey(c.facts().PublicKey)
	if err != nil {
		c.t.Fatal(err)
	}
	client, err := node.New(node.Config{
		Credential: node.Credential{Hub: to, HubKey: hubKey, AuthorityID: authority, Key: c.keys[name(n)]},
		Device:     nodetest.NewDevice(64),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- client.Run(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			c.t.Errorf("client of %s: %v", name(n), err)
		}
	})
	return client
}

// The one between is good at what he does: two ends that bind nothing to TLS agree through
// him.
func TestWhoeverEndsTLSOnTheWayPassesWhatIsNotBound(t *testing.T) {
	t.Parallel()
	end := impersonate(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	taken := make(chan error, 1)
	go func() { taken <- takeUnbound(ctx, end.listener, end.key) }()
	t.Cleanup(func() {
		cancel()
		end.close()
	})
	way := stands(t, end.at)
	p, err := dialPeer(ctx, dialling{
		key: end.key, hub: end.key.Public(), authority: authority, from: "127.0.0.1:0", to: way.at, config: tunnel.NodeQUIC(), export: unbound,
		offer: tunnel.Offer{Versions: []uint8{tunnel.Version}, InnerMTU: tunnel.MaxInnerMTU, Lanes: []tunnel.Lane{tunnel.LaneDatagram}},
	})
	if p != nil {
		t.Cleanup(p.close)
	}
	if err != nil {
		t.Errorf("the node: %v", err)
	}
	if err := <-taken; err != nil {
		t.Errorf("the hub: %v", err)
	}
}

// takeUnbound is a hub that takes one node, and binds nothing.
func takeUnbound(ctx context.Context, listener *quic.Listener, key tunnel.PrivateKey) error {
	conn, err := listener.Accept(ctx)
	if err != nil {
		return err
	}
	stream, err := conn.AcceptStream(ctx)
	if err != nil {
		return err
	}
	request, err := tunnel.Responder{Static: key, AuthorityID: authority}.Receive(stream, unbound)
	if err != nil {
		return err
	}
	terms := tunnel.DatagramTerms()
	answer, err := terms.Negotiate(request.Offer())
	if err != nil {
		return err
	}
	answer.ControlAddress, answer.HubAddress = netip.MustParsePrefix("10.90.0.10/24"), hubControl
	session, err := request.Answer(stream, answer)
	if err != nil {
		return err
	}
	_, err = session.Control(stream).Next()
	return err
}
