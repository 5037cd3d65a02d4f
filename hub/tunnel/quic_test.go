package tunnel

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// testLimit bounds every wait of a test on the loopback interface. It is no
// expectation: a test that reaches it has failed.
const testLimit = 20 * time.Second

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	return ctx
}

func loopback(t *testing.T) net.PacketConn {
	t.Helper()
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return socket
}

// testHub is what the hub's shell will be, as small as it can be: it takes one
// connection after the other and runs the handshake on each.
type testHub struct {
	addr      net.Addr
	responder Responder
	sessions  chan *Session // confirmed
	conns     chan *quic.Conn
	failures  chan error

	mu      sync.Mutex
	refused []HelloRefusal
}

func startHub(t *testing.T, responder Responder, tune func(*tls.Config)) *testHub {
	t.Helper()
	h := &testHub{
		responder: responder,
		sessions:  make(chan *Session, 8),
		conns:     make(chan *quic.Conn, 8),
		failures:  make(chan error, 8),
	}
	certificate, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	config := HubTLS(certificate, func(_ net.Addr, why HelloRefusal) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.refused = append(h.refused, why)
	})
	if tune != nil {
		tune(config)
	}
	transport := HubTransport(loopback(t), responder.Static)
	t.Cleanup(func() { transport.Close() })
	listener, err := transport.Listen(config, HubQUIC())
	if err != nil {
		t.Fatal(err)
	}
	h.addr = listener.Addr()
	ctx := bounded(t)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept(ctx)
			if err != nil {
				return
			}
			running.Go(func() { h.serve(ctx, conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		transport.Close()
		running.Wait()
	})
	return h
}

func (h *testHub) serve(ctx context.Context, conn *quic.Conn) {
	session, err := h.handshake(ctx, conn)
	if err != nil {
		code := CloseCodeFor(err)
		conn.CloseWithError(code.QUIC(), code.String())
		h.failures <- err
		return
	}
	h.conns <- conn
	h.sessions <- session
}

func (h *testHub) handshake(ctx context.Context, conn *quic.Conn) (*Session, error) {
	stream, err := conn.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	stream.SetDeadline(time.Now().Add(HandshakeLimit))
	request, err := h.responder.Receive(stream, ExporterOf(conn))
	if err != nil {
		return nil, err
	}
	answer, err := DatagramTerms().Negotiate(request.Offer())
	if err != nil {
		return nil, err
	}
	answer.ControlAddress, answer.HubAddress = testControl, testHubAddress
	session, err := request.Answer(stream, answer)
	if err != nil {
		return nil, err
	}
	if _, err := session.Control(stream).Next(); err != nil {
		return nil, err
	}
	return session, nil
}

func (h *testHub) refusals() []HelloRefusal {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]HelloRefusal(nil), h.refused...)
}

// dial connects a node by QUIC alone.
func dial(t *testing.T, to net.Addr, tune func(*tls.Config)) (*quic.Conn, error) {
	t.Helper()
	transport := NodeTransport(loopback(t))
	t.Cleanup(func() { transport.Close() })
	config := NodeTLS()
	if tune != nil {
		tune(config)
	}
	return transport.Dial(bounded(t), to, config, NodeQUIC())
}

// join runs a node's handshake over a connection.
func join(t *testing.T, conn *quic.Conn, initiator Initiator) (*Session, error) {
	t.Helper()
	stream, err := conn.OpenStreamSync(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	stream.SetDeadline(time.Now().Add(HandshakeLimit))
	return initiator.Handshake(stream, ExporterOf(conn))
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-bounded(t).Done():
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// R61: a node with a key that the hub is told of, and with the hub's own, gets
// in, and packets cross whole and in parts.
func TestR61_NodeWithTheRightKeysGetsIn(t *testing.T) {
	hub := startHub(t, testResponder(), nil)
	conn, err := dial(t, hub.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := join(t, conn, testInitiator())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := session.Answer().ControlAddress, testControl; got != want {
		t.Errorf("control address %v, want %v", got, want)
	}
	remote := receive(t, hub.sessions)
	if remote.Peer() != nodeKey.Public() || session.Peer() != hubKey.Public() {
		t.Error("an end does not know the other one's key")
	}
	state := conn.ConnectionState().TLS
	if state.Version != tls.VersionTLS13 || state.CurveID != tls.X25519MLKEM768 || state.ServerName != "" {
		t.Errorf("TLS %x, key exchange %v, name %q", state.Version, state.CurveID, state.ServerName)
	}
	hubConn := receive(t, hub.conns)
	var splitter Splitter
	joiner := NewJoiner(DefaultInnerMTU)
	var scratch [MaxInnerMTU]byte
	for _, size := range []int{MinPacket, 1100, DefaultInnerMTU} {
		packet := testPacket(size, byte(size))
		// 1,100 is what every QUIC packet of 1,200 bytes has room for.
		first, second, err := splitter.Split(packet, 1100, &[2][]byte{})
		if err != nil {
			t.Fatal(err)
		}
		for _, datagram := range [][]byte{first, second} {
			if datagram == nil {
				continue
			}
			if err := conn.SendDatagram(datagram); err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
		}
		for {
			datagram, err := hubConn.ReceiveDatagram(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			got, result := joiner.Take(datagram, &scratch, time.Now())
			if result == JoinHeld {
				continue
			}
			if !bytes.Equal(got, packet) {
				t.Fatalf("%d bytes: %v", size, result)
			}
			break
		}
	}
}

// R61: nobody in the middle can stand between the node's TLS session and the
// hub's, even though no certificate is verified.
func TestR61_ProxyThatTerminatesTLSFails(t *testing.T) {
	hub := startHub(t, testResponder(), nil)
	certificate, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	transport := HubTransport(loopback(t), mustKey(0x33))
	defer transport.Close()
	proxy, err := transport.Listen(HubTLS(certificate, nil), HubQUIC())
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t)
	var running sync.WaitGroup
	defer running.Wait()
	defer proxy.Close()
	running.Go(func() {
		front, err := proxy.Accept(ctx)
		if err != nil {
			return
		}
		back, err := dial(t, hub.addr, nil)
		if err != nil {
			t.Error(err)
			return
		}
		from, err := front.AcceptStream(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		to, err := back.OpenStreamSync(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		running.Go(func() { io.Copy(from, to); front.CloseWithError(0, "") })
		io.Copy(to, from)
		back.CloseWithError(0, "")
	})
	conn, err := dial(t, proxy.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := join(t, conn, testInitiator()); err == nil {
		t.Error("the handshake went through the proxy")
	}
	if err := receive(t, hub.failures); !errors.Is(err, ErrNotAuthentic) {
		t.Errorf("the hub saw %v, want %v", err, ErrNotAuthentic)
	}
}
