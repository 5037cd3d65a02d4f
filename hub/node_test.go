package hub

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/tunnel"
)

// keyOf is the private key of node i.
func keyOf(i int) tunnel.PrivateKey {
	var scalar [tunnel.KeySize]byte
	binary.BigEndian.PutUint32(scalar[:], uint32(i+1))
	key, err := tunnel.NewPrivateKey(scalar)
	if err != nil {
		panic(err)
	}
	return key
}

// node is a client as small as can be, on the dialling side of package tunnel.
type node struct {
	t         testing.TB
	transport *quic.Transport
	socket    net.PacketConn
	conn      *quic.Conn
	stream    *quic.Stream
	session   *tunnel.Session
	joiner    *tunnel.Joiner
	splitter  tunnel.Splitter

	ready   chan struct{} // closed when the hub's first message came
	running sync.WaitGroup

	mu       sync.Mutex
	packets  [][]byte
	messages []tunnel.Message
	refused  int           // datagrams that held no packet
	broken   error         // that ended the stream of messages
	got      chan struct{} // has room for one: a packet came
}

// dialling is how a node dials; fields left out are those of node i.
type dialling struct {
	key       tunnel.PrivateKey
	hub       contract.NoiseKey
	authority string
	from      string // address to bind
	offer     tunnel.Offer
	config    *quic.Config
	stop      func(n *node) bool // called with the connection open; false goes no further
}

// dialIt dials the hub and runs the handshake. It returns the node also when that
// failed.
func (r *rig) dialIt(i int, change ...func(*dialling)) (*node, error) {
	r.t.Helper()
	d := dialling{
		key: keyOf(i), hub: r.key.Public(), authority: "authority:1", from: r.from(i), config: tunnel.NodeQUIC(),
		offer: tunnel.Offer{Versions: []uint8{tunnel.Version}, InnerMTU: tunnel.MaxInnerMTU, Lanes: []tunnel.Lane{tunnel.LaneDatagram}},
	}
	for _, c := range change {
		c(&d)
	}
	n := &node{t: r.t, ready: make(chan struct{}), got: make(chan struct{}, 1), joiner: tunnel.NewJoiner(tunnel.MaxInnerMTU)}
	var err error
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if n.socket, err = r.listen(ctx, "udp4", d.from); err != nil {
		r.t.Fatal(err)
	}
	n.transport = tunnel.NodeTransport(n.socket)
	r.t.Cleanup(n.close)
	n.conn, err = n.transport.Dial(ctx, net.UDPAddrFromAddrPort(r.Addr()), tunnel.NodeTLS(), d.config)
	if err != nil {
		return n, err
	}
	if n.stream, err = n.conn.OpenStreamSync(ctx); err != nil {
		return n, err
	}
	n.stream.SetDeadline(time.Now().Add(time.Minute))
	if d.stop != nil && !d.stop(n) {
		return n, nil
	}
	initiator := tunnel.Initiator{Static: d.key, Hub: d.hub, AuthorityID: d.authority, Offer: d.offer}
	if n.session, err = initiator.Handshake(n.stream, tunnel.ExporterOf(n.conn)); err != nil {
		return n, err
	}
	n.stream.SetDeadline(time.Time{})
	n.running.Go(n.control)
	n.running.Go(n.read)
	return n, nil
}

// dial dials the hub as node i and waits until the hub has taken it.
func (r *rig) dial(i int, change ...func(*dialling)) *node {
	r.t.Helper()
	n, err := r.dialIt(i, change...)
	if err != nil {
		r.t.Fatalf("node %d: %v", i, err)
	}
	select {
	case <-n.ready:
	case <-n.conn.Context().Done():
		r.t.Fatalf("node %d: %v", i, context.Cause(n.conn.Context()))
	}
	return n
}

func (n *node) control() {
	c := n.session.Control(n.stream)
	for {
		m, err := c.Next()
		n.mu.Lock()
		if err != nil {
			n.broken = err
			n.mu.Unlock()
			return
		}
		n.messages = append(n.messages, m)
		if len(n.messages) == 1 {
			close(n.ready)
		}
		n.mu.Unlock()
	}
}

func (n *node) read() {
	var scratch [tunnel.MaxInnerMTU]byte
	for {
		b, err := n.conn.ReceiveDatagram(context.Background())
		if err != nil {
			return
		}
		packet, result := n.joiner.Take(b, &scratch, time.Now())
		n.mu.Lock()
		if result.Refused() {
			n.refused++
		} else if packet != nil {
			n.packets = append(n.packets, append([]byte(nil), packet...))
		}
		n.mu.Unlock()
		if packet != nil {
			signal(n.got)
		}
	}
}

// closed waits for the end of the connection and returns the hub's code.
func (n *node) closed() tunnel.CloseCode {
	n.t.Helper()
	select {
	case <-n.conn.Context().Done():
	case <-time.After(time.Minute):
		n.t.Fatal("the connection stays open")
	}
	return n.code(context.Cause(n.conn.Context()))
}

func (n *node) code(err error) tunnel.CloseCode {
	n.t.Helper()
	code, ok := tunnel.PeerClose(err)
	if !ok {
		n.t.Fatalf("the connection ended: %v", err)
	}
	return code
}

// open reports whether the connection stands.
func (n *node) open() bool { return n.conn.Context().Err() == nil }

func (n *node) close() {
	if n.conn != nil {
		n.conn.CloseWithError(0, "")
	}
	n.transport.Close()
	n.socket.Close()
	n.running.Wait()
}

// send sends one packet, in two parts where it has to.
func (n *node) send(packet []byte) {
	limit := 1 << 16
	for {
		first, second, err := n.splitter.Split(packet, limit, &[2][]byte{})
		if err != nil {
			n.t.Errorf("send: %v", err)
			return
		}
		err = n.conn.SendDatagram(first)
		if size, ok := tooLarge(err); ok {
			limit = int(size)
			continue
		}
		if second != nil {
			n.conn.SendDatagram(second)
		}
		return
	}
}

// take returns the packets that came since the last call.
func (n *node) take() [][]byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.packets
	n.packets = nil
	return all
}

// packetOf is a packet of so many bytes that begins its payload with a number.
func packetOf(from, to string, length, number int) []byte {
	p := make([]byte, length)
	p[0], p[8], p[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(p[2:], uint16(length))
	a, b := netip.MustParseAddr(from).As4(), netip.MustParseAddr(to).As4()
	copy(p[12:], a[:])
	copy(p[16:], b[:])
	if length >= 24 {
		binary.BigEndian.PutUint32(p[20:], uint32(number))
	}
	return p
}

// echoOf is an ICMP echo request.
func echoOf(from, to string) []byte {
	p := packetOf(from, to, 28, 0)
	p[9], p[20] = 1, 8
	binary.BigEndian.PutUint16(p[22:], 0xf7ff)
	return p
}

// numbers are those that packets begin their payload with.
func numbers(packets [][]byte) (all []int) {
	for _, p := range packets {
		all = append(all, int(binary.BigEndian.Uint32(p[20:])))
	}
	return all
}
