package tunnel

import (
	"crypto/hkdf"
	"crypto/sha256"
	"net"

	"github.com/quic-go/quic-go"
)

const (
	// PacketSize is the UDP payload that QUIC begins with, on both ends: the
	// largest that a path of 1,280 bytes carries, over IPv6 too. quic-go's own
	// choice, 1,280 bytes with DF set, does not connect over such a path. Its
	// search for more halves the way to 1,452 until 21 bytes are left, so the
	// beginning also decides where it ends: from 1,232 at 1,438, which gives
	// datagrams of 1,401 bytes; from 1,200 at 1,436, which gives 1,399, one byte
	// short of DefaultInnerMTU.
	PacketSize = 1232

	// controlWindow is what may wait unread on the control stream: sixteen of
	// the largest frames. Nothing else has a window.
	controlWindow = 16 << 10

	// connectionIDLength of the hub. A stateless reset is as hard to forge as
	// the connection id is to meet again: four bytes would be met.
	connectionIDLength = 8

	// noStreams is how quic-go spells a limit of zero streams.
	noStreams = -1
)

// HubQUIC returns the hub's side of QUIC: one stream a connection, which the
// node opens.
func HubQUIC() *quic.Config {
	config := baseQUIC()
	config.MaxIncomingStreams = 1
	// A stream that has ended is not followed by another.
	config.RequireStreamCreditRelease = true
	return config
}

// NodeQUIC returns the node's side of QUIC: it takes no streams, and keeps the
// connection alive.
func NodeQUIC() *quic.Config {
	config := baseQUIC()
	config.MaxIncomingStreams = noStreams
	config.KeepAlivePeriod = Keepalive
	return config
}

func baseQUIC() *quic.Config {
	return &quic.Config{
		Versions:                       []quic.Version{quic.Version1},
		HandshakeIdleTimeout:           HandshakeLimit / 2, // quic-go lets the handshake take twice as long
		MaxIdleTimeout:                 IdleTimeout,
		InitialStreamReceiveWindow:     controlWindow,
		MaxStreamReceiveWindow:         controlWindow,
		InitialConnectionReceiveWindow: controlWindow,
		MaxConnectionReceiveWindow:     controlWindow,
		MaxIncomingUniStreams:          noStreams,
		InitialPacketSize:              PacketSize,
		EnableDatagrams:                true,
	}
}

// HubTransport returns QUIC's transport on the hub's socket. The caller adds
// ConnContext and VerifySourceAddress before it listens, and closes it.
//
// Its stateless resets are those of the hub's key: a hub that comes back with
// the same key tells the nodes of the one before that their connections are
// gone. Version negotiation is off: there is one version, and an answer to any
// other would be sent to whoever an address claims to be.
func HubTransport(socket net.PacketConn, hub PrivateKey) *quic.Transport {
	reset := resetKey(hub)
	return &quic.Transport{
		Conn:                             socket,
		ConnectionIDLength:               connectionIDLength,
		StatelessResetKey:                &reset,
		DisableVersionNegotiationPackets: true,
	}
}

// NodeTransport returns QUIC's transport on a node's socket. The caller closes
// it.
func NodeTransport(socket net.PacketConn) *quic.Transport {
	return &quic.Transport{Conn: socket, DisableVersionNegotiationPackets: true}
}

func resetKey(hub PrivateKey) quic.StatelessResetKey {
	key, err := hkdf.Key(sha256.New, hub.scalar.get()[:], nil, resetLabel, len(quic.StatelessResetKey{}))
	if err != nil {
		panic("tunnel: " + err.Error()) // only a length above 255 hashes fails
	}
	return quic.StatelessResetKey(key)
}
