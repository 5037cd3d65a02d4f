package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/tunnel"
)

// Bind opens the socket and begins to take connections (contract §5.6, step 3). The
// hub is empty then, so that no handshake succeeds. On an error nothing stays bound.
func (h *Hub) Bind(ctx context.Context) error {
	certificate, err := tunnel.NewCertificate()
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	socket, err := h.cfg.ListenPacket(ctx, "udp4", h.cfg.Address.String())
	if err != nil {
		return fmt.Errorf("hub: bind %s: %w", h.cfg.Address, err)
	}
	bound, err := addrOf(socket.LocalAddr())
	if err != nil {
		return errors.Join(fmt.Errorf("hub: %w", err), socket.Close())
	}
	transport := tunnel.HubTransport(h.writes.counted(socket), h.key)
	transport.ConnContext = h.arrived
	transport.VerifySourceAddress = h.strained
	listener, err := transport.ListenEarly(tunnel.HubTLS(certificate, h.helloRefused), h.patient())
	if err != nil {
		return errors.Join(fmt.Errorf("hub: listen on %s: %w", bound, err), transport.Close(), socket.Close())
	}
	h.reserve = make([]byte, reserved)
	h.kernel.watch(socket) // QUIC has asked for its buffers
	h.mu.Lock()
	h.socket, h.transport, h.listener, h.bound = socket, transport, listener, bound
	h.publish(HubBound, field.Address(bound), field.PublicKey(h.key.Public().String()))
	if h.ephemeral {
		h.publish(HubKeyEphemeral)
	}
	h.mu.Unlock()
	h.flush()
	return nil
}

// addrOf returns the address that a socket is bound to.
func addrOf(a net.Addr) (netip.AddrPort, error) {
	udp, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}, errors.New("the socket is not one of udp")
	}
	return netip.AddrPortFrom(udp.AddrPort().Addr().Unmap(), udp.AddrPort().Port()), nil
}

// Addr is where the hub is bound; invalid before Bind.
func (h *Hub) Addr() netip.AddrPort {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bound
}

// Facts are what the relay's registration says of the hub (contract §5.3). They are
// valid once it is bound.
func (h *Hub) Facts() contract.VPNHub {
	bound := h.Addr()
	return contract.VPNHub{PublicKey: h.key.Public().String(), Address: bound.Addr().String(), QUICPort: int64(bound.Port())}
}

// patient returns QUIC's configuration, which gives connections less time to begin where
// the places for them become scarce.
func (h *Hub) patient() *quic.Config {
	usual, hurried := *h.quic, *h.quic
	hurried.HandshakeIdleTimeout = hurriedIdle
	usual.GetConfigForClient = func(info *quic.ClientInfo) (*quic.Config, error) {
		if h.strained(info.RemoteAddr) {
			return &hurried, nil
		}
		return h.quic, nil
	}
	return &usual
}

// placeKey is under which a connection's context holds its place.
type placeKey struct{}

// errNoPlace is a connection that there is no place for. QUIC refuses it.
var errNoPlace = errors.New("hub: no place for another connection")

// arrived counts a connection from its first packet on. It runs on the transport's
// goroutine and must not wait.
func (h *Hub) arrived(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	from, err := addrOf(info.RemoteAddr)
	if err != nil {
		return nil, err
	}
	if h.stopping() {
		h.ended(endDraining, "", field.Address(from))
		return nil, errNoPlace
	}
	h.gateMu.Lock()
	p, over, how := h.gate.admit(from.Addr(), time.Now())
	var shut *quic.Conn
	if over != nil {
		shut = over.conn // nil where hold will find that its place is lost
	}
	h.gateMu.Unlock()
	if shut != nil {
		h.workers.Go(func() { shut.CloseWithError(tunnel.CloseBusy.QUIC(), tunnel.CloseBusy.String()) })
	}
	if p == nil {
		h.ended(how, "", field.Address(from))
		return nil, errNoPlace
	}
	context.AfterFunc(ctx, func() {
		h.gateMu.Lock()
		defer h.gateMu.Unlock()
		h.gate.end(p)
	})
	return context.WithValue(ctx, placeKey{}, p), nil
}

// hold makes the connection of a place known, and reports whether the place is its own
// still.
func (h *Hub) hold(p *place, conn *quic.Conn) bool {
	h.gateMu.Lock()
	defer h.gateMu.Unlock()
	p.conn = conn
	return !p.left
}

// leave gives a place back, and reports whether it was held until now.
func (h *Hub) leave(p *place) bool {
	h.gateMu.Lock()
	defer h.gateMu.Unlock()
	return h.gate.leave(p)
}

// lost reports whether a place was taken for another connection.
func (h *Hub) lost(p *place) bool {
	h.gateMu.Lock()
	defer h.gateMu.Unlock()
	return p.lost
}

// strained reports whether an address must be validated first (RFC 9000 §8.1.2).
func (h *Hub) strained(a net.Addr) bool {
	from, err := addrOf(a)
	h.gateMu.Lock()
	defer h.gateMu.Unlock()
	return err != nil || h.gate.strained(from.Addr())
}

// helloRefused is told of peers that TLS refuses.
func (h *Hub) helloRefused(peer net.Addr, why tunnel.HelloRefusal) {
	how := endOtherALPN
	if why == tunnel.HelloNoHybrid {
		how = endNoHybrid
	}
	h.ended(how, "", field.NetAddr(peer))
}

func (h *Hub) stopping() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining || h.closed
}
