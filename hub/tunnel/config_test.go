package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

func only(curve tls.CurveID) func(*tls.Config) {
	return func(c *tls.Config) {
		c.CurvePreferences = []tls.CurveID{curve}
		c.VerifyConnection = nil
	}
}

func protocol(name string) func(*tls.Config) {
	return func(c *tls.Config) {
		c.NextProtos = []string{name}
		c.VerifyConnection = nil
	}
}

// A peer without the hybrid key exchange, or of another protocol, is refused by
// name on both ends, whichever end it is.
func TestPeersThatTLSRefuses(t *testing.T) {
	tests := []struct {
		name      string
		hub, node func(*tls.Config)
		refused   []HelloRefusal
		want      error
	}{
		{"node without the hybrid", nil, only(tls.X25519), []HelloRefusal{HelloNoHybrid}, ErrNoHybrid},
		{"hub without the hybrid", only(tls.X25519), nil, nil, ErrNoHybrid},
		{"node of another protocol", nil, protocol("h3"), []HelloRefusal{HelloNoALPN}, ErrOtherProtocol},
		{"hub of another protocol", protocol("h3"), nil, nil, ErrOtherProtocol},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			hub := startHub(t, testResponder(), test.hub)
			conn, err := dial(t, hub.addr, test.node)
			if err == nil {
				conn.CloseWithError(0, "")
				t.Fatal("connected")
			}
			if got := NameTLSError(err); !errors.Is(got, test.want) {
				t.Errorf("the node saw %v, want %v", got, test.want)
			}
			// A hello that is sent again may be refused again.
			if got := slices.Compact(hub.refusals()); !slices.Equal(got, test.refused) {
				t.Errorf("the hub named %v, want %v", got, test.refused)
			}
		})
	}
}

// A library that agreed on something else than it was told to is noticed.
func TestTLSIsLookedAtTwice(t *testing.T) {
	good := tls.ConnectionState{Version: tls.VersionTLS13, CurveID: tls.X25519MLKEM768, NegotiatedProtocol: ALPN}
	if err := checkTLS(good); err != nil {
		t.Errorf("a good session: %v", err)
	}
	for name, spoil := range map[string]func(*tls.ConnectionState){
		"version":      func(s *tls.ConnectionState) { s.Version = tls.VersionTLS12 },
		"key exchange": func(s *tls.ConnectionState) { s.CurveID = tls.X25519 },
		"protocol":     func(s *tls.ConnectionState) { s.NegotiatedProtocol = "" },
		"resumed":      func(s *tls.ConnectionState) { s.DidResume = true },
	} {
		state := good
		spoil(&state)
		if checkTLS(state) == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
	for name, config := range map[string]*tls.Config{"hub": HubTLS(tls.Certificate{}, nil), "node": NodeTLS()} {
		if config.VerifyConnection == nil || config.VerifyConnection(tls.ConnectionState{}) == nil {
			t.Errorf("the %s does not look", name)
		}
	}
}

// ticketCounter is a session cache that keeps nothing.
type ticketCounter struct {
	mu  sync.Mutex
	put int
}

func (c *ticketCounter) Get(string) (*tls.ClientSessionState, bool) { return nil, false }

func (c *ticketCounter) Put(string, *tls.ClientSessionState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put++
}

func TestNoTicketsAndOneStream(t *testing.T) {
	hub := startHub(t, testResponder(), nil)
	cache := &ticketCounter{}
	conn, err := dial(t, hub.addr, func(c *tls.Config) { c.ClientSessionCache = cache })
	if err != nil {
		t.Fatal(err)
	}
	// The hub's response comes behind the end of its TLS, where tickets are.
	if _, err := join(t, conn, testInitiator()); err != nil {
		t.Fatal(err)
	}
	cache.mu.Lock()
	if cache.put != 0 {
		t.Error("the hub gave a ticket")
	}
	cache.mu.Unlock()

	var limit *quic.StreamLimitReachedError
	if _, err := conn.OpenStream(); !errors.As(err, &limit) {
		t.Errorf("a second stream of the node: %v", err)
	}
	if _, err := conn.OpenUniStream(); !errors.As(err, &limit) {
		t.Errorf("a one-way stream of the node: %v", err)
	}
	hubConn := receive(t, hub.conns)
	if _, err := hubConn.OpenStream(); !errors.As(err, &limit) {
		t.Errorf("a stream of the hub: %v", err)
	}
	if _, err := hubConn.OpenUniStream(); !errors.As(err, &limit) {
		t.Errorf("a one-way stream of the hub: %v", err)
	}
}

// narrow is a socket on a path that carries no IPv4 packet above 1,280 bytes,
// and says so to nobody.
type narrow struct{ *socketOnly }

// socketOnly hides from QUIC that a socket can do more than a PacketConn.
type socketOnly struct{ net.PacketConn }

func (s *socketOnly) SetReadBuffer(int) error  { return nil }
func (s *socketOnly) SetWriteBuffer(int) error { return nil }

const narrowPayload = 1280 - 20 - 8

func (n narrow) WriteTo(p []byte, to net.Addr) (int, error) {
	if len(p) > narrowPayload {
		return len(p), nil
	}
	return n.PacketConn.WriteTo(p, to)
}

func TestConnectsOverAPathOf1280(t *testing.T) {
	hub := startHub(t, testResponder(), nil)
	transport := NodeTransport(narrow{&socketOnly{loopback(t)}})
	defer transport.Close()
	conn, err := transport.Dial(bounded(t), hub.addr, NodeTLS(), NodeQUIC())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := join(t, conn, testInitiator()); err != nil {
		t.Fatal(err)
	}
}

// A packet of the default inner MTU needs no splitting once QUIC knows a path
// of 1,500 bytes.
func TestDefaultInnerMTUTravelsUnsplit(t *testing.T) {
	hub := startHub(t, testResponder(), nil)
	conn, err := dial(t, hub.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := join(t, conn, testInitiator()); err != nil {
		t.Fatal(err)
	}
	hubConn := receive(t, hub.conns)
	ctx := bounded(t)
	for {
		err := conn.SendDatagram(testPacket(DefaultInnerMTU, 1))
		var tooLarge *quic.DatagramTooLargeError
		if err == nil {
			return
		}
		if !errors.As(err, &tooLarge) {
			t.Fatal(err)
		}
		// Discovery goes on with the acknowledgements of traffic.
		if err := conn.SendDatagram(testPacket(MinPacket, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := hubConn.ReceiveDatagram(ctx); err != nil {
			t.Fatalf("a datagram holds only %d bytes", tooLarge.MaxDatagramPayloadSize)
		}
	}
}

// A hub that comes back with its key ends the connections of the one before at
// once, though it remembers nothing of them.
func TestHubThatComesBackResetsConnections(t *testing.T) {
	certificate, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	listen := func(at string) (net.PacketConn, *quic.Transport, *quic.Listener) {
		socket, err := net.ListenPacket("udp4", at)
		if err != nil {
			t.Fatal(err)
		}
		transport := HubTransport(socket, hubKey)
		listener, err := transport.Listen(HubTLS(certificate, nil), HubQUIC())
		if err != nil {
			t.Fatal(err)
		}
		return socket, transport, listener
	}
	socket, transport, listener := listen("127.0.0.1:0")
	conn, err := dial(t, socket.LocalAddr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listener.Accept(bounded(t)); err != nil {
		t.Fatal(err)
	}
	// The socket first: a hub that is killed says goodbye to nobody.
	socket.Close()
	listener.Close()
	transport.Close()
	socket, transport, listener = listen(socket.LocalAddr().String())
	defer socket.Close()
	defer transport.Close()
	defer listener.Close()

	if err := conn.SendDatagram(testPacket(1000, 1)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-conn.Context().Done():
	case <-bounded(t).Done():
	}
	var reset *quic.StatelessResetError
	if err := context.Cause(conn.Context()); !errors.As(err, &reset) {
		t.Errorf("the connection ended with %v, want a stateless reset", err)
	}
}

func TestConfigurations(t *testing.T) {
	for name, config := range map[string]*quic.Config{"hub": HubQUIC(), "node": NodeQUIC()} {
		switch {
		case !slices.Equal(config.Versions, []quic.Version{quic.Version1}):
			t.Errorf("%s: versions %v", name, config.Versions)
		case config.InitialPacketSize != 1232 || config.DisablePathMTUDiscovery:
			t.Errorf("%s: packet size %d, discovery off %v", name, config.InitialPacketSize, config.DisablePathMTUDiscovery)
		case !config.EnableDatagrams || config.Allow0RTT:
			t.Errorf("%s: datagrams %v, 0-RTT %v", name, config.EnableDatagrams, config.Allow0RTT)
		case config.MaxIdleTimeout != 30*time.Second || config.HandshakeIdleTimeout != 5*time.Second:
			t.Errorf("%s: idle %v, handshake %v", name, config.MaxIdleTimeout, config.HandshakeIdleTimeout)
		case config.MaxStreamReceiveWindow != 16<<10 || config.MaxConnectionReceiveWindow != 16<<10:
			t.Errorf("%s: windows %d, %d", name, config.MaxStreamReceiveWindow, config.MaxConnectionReceiveWindow)
		}
	}
	// A stream that has ended makes no room for another.
	if config := HubQUIC(); config.MaxIncomingStreams != 1 || !config.RequireStreamCreditRelease {
		t.Error("the hub takes more than one stream of a connection")
	}
	if got := NodeQUIC().KeepAlivePeriod; got != 10*time.Second {
		t.Errorf("the node's keepalive: %v", got)
	}
	hub := HubTransport(nil, hubKey)
	if !hub.DisableVersionNegotiationPackets || hub.StatelessResetKey == nil || hub.ConnectionIDLength != 8 {
		t.Errorf("hub's transport: %v, %v, %d", hub.DisableVersionNegotiationPackets, hub.StatelessResetKey != nil, hub.ConnectionIDLength)
	}
	if resetKey(hubKey) != *hub.StatelessResetKey || resetKey(hubKey) == resetKey(nodeKey) {
		t.Error("the reset key is not the hub key's own")
	}
	a, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(a.Certificate[0], b.Certificate[0]) {
		t.Error("two certificates are the same")
	}
}

// B134: connections that are closed at once, before the hub even knows that
// their handshake is over, leave it as it was.
func TestB134_ClosedAtOnce(t *testing.T) {
	hub := startHub(t, testResponder(), nil)
	for range 5 {
		conn, err := dial(t, hub.addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		conn.CloseWithError(CloseDone.QUIC(), CloseDone.String())
	}
	conn, err := dial(t, hub.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := join(t, conn, testInitiator()); err != nil {
		t.Error(err)
	}
	receive(t, hub.sessions)
}

// What the hub closes with is what the node reads, and only what the other end
// said counts.
func TestCloseCodeCrosses(t *testing.T) {
	hub := startHub(t, testResponder(), nil)
	stranger := testInitiator()
	stranger.AuthorityID = "another"
	conn, err := dial(t, hub.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = join(t, conn, stranger)
	if code, ok := PeerClose(err); !ok || code != CloseHandshake {
		t.Errorf("got %v, %v of %v; want %v", code, ok, err, CloseHandshake)
	}
	receive(t, hub.failures)
	if code, ok := PeerClose(&quic.ApplicationError{ErrorCode: 3}); ok {
		t.Errorf("our own close counts as the peer's: %v", code)
	}
	if code, ok := PeerClose(&quic.ApplicationError{Remote: true, ErrorCode: 1 << 40}); !ok || code != 0xffff {
		t.Errorf("a code above ours: %v, %v", code, ok)
	}
}
