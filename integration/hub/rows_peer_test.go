package hub_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub"
	"serve.zone/relay/hub/tunnel"
	"serve.zone/relay/integration/rig"
)

// peer is the dialling end of a tunnel in the hands of a test: it sends what no right
// node would, stops where the test says, and dials once. It reaches the hub directly.
type peer struct {
	transport *quic.Transport
	socket    net.PacketConn
	conn      *quic.Conn
	stream    *quic.Stream
	session   *tunnel.Session
	joiner    *tunnel.Joiner
	parts     atomic.Uint32 // packets that were sent in two
	limit     atomic.Int64  // of a datagram to the hub, as QUIC said last

	seated  chan struct{} // closed when the hub's first message behind the handshake came
	over    chan struct{} // closed when got has everything that ever came
	running sync.WaitGroup

	// got takes every packet that came out of the tunnel, on the goroutine that reads.
	got func(packet []byte)

	mu      sync.Mutex
	packets [][]byte // those that came, unless got is set
	cut     context.CancelFunc
	empty   chan struct{} // wanted: closed when no packet waits in QUIC
}

// dialling is how a peer dials. What is left out is that of a right node.
type dialling struct {
	key       tunnel.PrivateKey
	hub       contract.NoiseKey
	authority string
	from      string // where it binds
	to        netip.AddrPort
	offer     tunnel.Offer
	config    *quic.Config
	tap       *tap // between QUIC and the socket, if any
	got       func(packet []byte)
	upTo      stage
	export    tunnel.Exporter // in place of the connection's own
	half      bool            // of the ClientHello alone
}

// stage is how far a peer goes with the handshake.
type stage int

const (
	confirmed stage = iota // all the way
	connected              // QUIC and TLS alone
	opened                 // a stream, and the first byte on it
	initiated              // Noise's first message was sent, and its answer is not read
	answered               // the answer was read, and is not confirmed
)

// errHalted is a peer that stopped where it was told to.
var errHalted = errors.New("the peer goes no further")

// hubAddress is where the hub is bound.
func (c *cluster) hubAddress() netip.AddrPort {
	c.t.Helper()
	facts := c.facts()
	return netip.AddrPortFrom(netip.MustParseAddr(facts.Address), uint16(facts.QUICPort))
}

// dialIt dials the hub with the key of node n and goes as far as it was told, or could.
func (c *cluster) dialIt(n int, change ...func(*dialling)) (*peer, error) {
	c.t.Helper()
	key, ok := contract.ParseNoiseKey(c.facts().PublicKey)
	if !ok {
		c.t.Fatal("the hub registered no key")
	}
	d := dialling{
		key: c.keys[name(n)], hub: key, authority: c.network.AuthorityID, from: "127.0.0.1:0", to: c.hubAddress(),
		offer:  tunnel.Offer{Versions: []uint8{tunnel.Version}, InnerMTU: tunnel.MaxInnerMTU, Lanes: []tunnel.Lane{tunnel.LaneDatagram}},
		config: tunnel.NodeQUIC(),
	}
	for _, apply := range change {
		apply(&d)
	}
	p, err := dialPeer(c.Soon(), d)
	if p == nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(p.close)
	return p, err
}

// dialPeer is dialIt, for any goroutine. Who calls it closes the peer, if there is one.
func dialPeer(ctx context.Context, d dialling) (*peer, error) {
	p := &peer{
		joiner: tunnel.NewJoiner(tunnel.MaxInnerMTU), seated: make(chan struct{}), over: make(chan struct{}), got: d.got,
	}
	p.limit.Store(1 << 16)
	if p.got == nil {
		p.got = p.keep
	}
	socket, err := net.ListenPacket("udp4", d.from)
	if err != nil {
		return nil, err
	}
	p.socket = socket
	if d.tap != nil {
		d.tap.begin(socket.(*net.UDPConn))
		p.socket, d.config.Tracer = d.tap, d.tap.trace
	}
	if d.half {
		h := &halved{packets: packets{p.socket}}
		h.may.Store(true)
		p.socket = h
	}
	p.transport = tunnel.NodeTransport(p.socket)
	if p.conn, err = p.transport.Dial(ctx, net.UDPAddrFromAddrPort(d.to), tunnel.NodeTLS(), d.config); err != nil {
		return p, err
	}
	if d.tap != nil {
		d.tap.over = p.conn.Context().Done()
	}
	if d.upTo == connected {
		return p, errHalted
	}
	if p.stream, err = p.conn.OpenStreamSync(ctx); err != nil {
		return p, err
	}
	p.stream.SetDeadline(time.Now().Add(rig.DefaultWait))
	if d.upTo == opened {
		_, err := p.stream.Write([]byte{byte(tunnel.FrameInitiation)})
		return p, errors.Join(errHalted, err)
	}
	initiator := tunnel.Initiator{Static: d.key, Hub: d.hub, AuthorityID: d.authority, Offer: d.offer}
	export := d.export
	if export == nil {
		export = tunnel.ExporterOf(p.conn)
	}
	if p.session, err = initiator.Handshake(&halting{p.stream, d.upTo, 0}, export); err != nil {
		return p, err
	}
	p.stream.SetDeadline(time.Time{})
	p.running.Go(p.listen)
	p.running.Go(p.read)
	return p, nil
}

// halting is a stream on which a handshake goes no further than a stage.
type halting struct {
	*quic.Stream
	upTo    stage
	written int
}

func (h *halting) Read(b []byte) (int, error) {
	if h.upTo == initiated {
		return 0, errHalted
	}
	return h.Stream.Read(b)
}

func (h *halting) Write(b []byte) (int, error) {
	if h.written++; h.upTo == answered && h.written > 1 {
		return 0, errHalted
	}
	return h.Stream.Write(b)
}

// dial dials the hub as node n and returns when the hub has taken it.
func (c *cluster) dial(n int, change ...func(*dialling)) *peer {
	c.t.Helper()
	p, err := c.dialIt(n, change...)
	if err == nil {
		err = p.waitSeated(c.Soon())
	}
	if err != nil {
		c.t.Fatalf("%s dials: %v", name(n), err)
	}
	return p
}

// waitSeated waits until the hub has taken the peer for its member.
func (p *peer) waitSeated(ctx context.Context) error {
	select {
	case <-p.seated:
		return nil
	case <-p.conn.Context().Done():
		return context.Cause(p.conn.Context())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listen reads the hub's messages.
func (p *peer) listen() {
	control := p.session.Control(p.stream)
	for first := true; ; first = false {
		if _, err := control.Next(); err != nil {
			return
		}
		if first {
			close(p.seated)
		}
	}
}

// read takes what comes out of the tunnel until the connection ends.
func (p *peer) read() {
	defer close(p.over)
	var scratch [tunnel.MaxInnerMTU]byte
	for {
		ctx, cut := context.WithCancel(context.Background())
		p.mu.Lock()
		p.cut = cut
		waits := p.empty
		p.mu.Unlock()
		if waits != nil {
			// What waits is given at once; only where nothing does is the time waited for.
			ctx, cut = context.WithTimeout(context.Background(), time.Millisecond)
		}
		datagram, err := p.conn.ReceiveDatagram(ctx)
		cut()
		switch {
		case p.conn.Context().Err() != nil && err != nil:
			return
		case err != nil && waits != nil:
			p.mu.Lock()
			p.empty = nil
			p.mu.Unlock()
			close(waits)
			continue
		case err != nil:
			continue
		}
		if packet, _ := p.joiner.Take(datagram, &scratch, time.Now()); packet != nil {
			p.got(packet)
		}
	}
}

// drain returns when everything that QUIC holds for the peer was given to got. QUIC must
// be getting nothing more meanwhile.
func (p *peer) drain(ctx context.Context) error {
	done := make(chan struct{})
	p.mu.Lock()
	p.empty = done
	if p.cut != nil {
		p.cut()
	}
	p.mu.Unlock()
	select {
	case <-done:
	case <-p.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (p *peer) keep(packet []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packets = append(p.packets, append([]byte(nil), packet...))
}

// take returns the packets that came since it was called before.
func (p *peer) take() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.packets
	p.packets = nil
	return all
}

// send sends one packet, in two parts where it has to.
func (p *peer) send(packet []byte) error {
	if len(packet) > int(p.limit.Load()) {
		return p.sendParts(packet)
	}
	err := p.conn.SendDatagram(packet)
	if large, ok := errors.AsType[*quic.DatagramTooLargeError](err); ok {
		p.limit.Store(large.MaxDatagramPayloadSize)
		return p.send(packet)
	}
	return err
}

// sendParts sends one packet in two parts.
func (p *peer) sendParts(packet []byte) error {
	number := p.parts.Add(1)
	half := (len(packet) + 1) / 2
	return errors.Join(
		p.conn.SendDatagram(partOf(number, len(packet), 0, packet[:half])),
		p.conn.SendDatagram(partOf(number, len(packet), half, packet[half:])),
	)
}

// open reports whether the connection stands.
func (p *peer) open() bool { return p.conn.Context().Err() == nil }

// closed returns the code that the hub has closed the connection with, and an error while
// it stands.
func (p *peer) closed() (tunnel.CloseCode, error) {
	if p.open() {
		return 0, errors.New("the connection stands")
	}
	cause := context.Cause(p.conn.Context())
	code, ok := tunnel.PeerClose(cause)
	if !ok {
		return 0, fmt.Errorf("the connection ended otherwise: %w", cause)
	}
	return code, nil
}

// wantClosed waits until the hub has closed the connection with a code.
func (c *cluster) wantClosed(what string, p *peer, want tunnel.CloseCode) {
	c.t.Helper()
	select {
	case <-p.conn.Context().Done():
	case <-c.Soon().Done():
	}
	if code, err := p.closed(); err != nil || code != want {
		c.t.Errorf("%s: closed with %v, %v, want %v", what, code, err, want)
	}
}

func (p *peer) close() {
	if p.conn != nil {
		p.conn.CloseWithError(0, "")
	}
	p.transport.Close()
	p.socket.Close()
	p.running.Wait()
}

// shown is the hub's own account.
func (c *cluster) shown() hub.Status { c.t.Helper(); return rig.SectionOf[hub.Status](c.Rig, hub.Name) }

// shownOf is what the hub shows of node n.
func (c *cluster) shownOf(n int) hub.Membership {
	c.t.Helper()
	for _, m := range c.shown().Members {
		if m.Node == name(n) {
			return m
		}
	}
	c.t.Fatalf("the hub shows no %s", name(n))
	return hub.Membership{}
}

// counted is one sample of the relay's metrics, which must be there.
func (c *cluster) counted(metric string, labels ...string) float64 {
	c.t.Helper()
	value, ok := c.Metrics().Value(metric, labels...)
	if !ok {
		c.t.Fatalf("there is no metric %s %q", metric, labels)
	}
	return value
}

// handshakes is how many handshakes ended so.
func (c *cluster) handshakes(outcome string) float64 {
	c.t.Helper()
	return c.counted("relay_hub_ended_handshakes_total", "outcome", outcome)
}
