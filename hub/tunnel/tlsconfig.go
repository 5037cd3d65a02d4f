package tunnel

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/quic-go/quic-go"
)

// HelloRefusal is why a hub refuses the first bytes of a peer's TLS.
type HelloRefusal string

// The refusals.
const (
	HelloNoHybrid HelloRefusal = "no-hybrid-key-exchange" // does not offer X25519MLKEM768
	HelloNoALPN   HelloRefusal = "other-protocol"         // does not offer ALPN
)

// Errors of TLS, as NameTLSError gives them.
var (
	ErrNoHybrid      = errors.New("peer has no X25519MLKEM768 key exchange")
	ErrOtherProtocol = fmt.Errorf("peer does not speak %s", ALPN)
)

// HubTLS returns the hub's side of TLS: 1.3 and X25519MLKEM768 only, no tickets.
// refused, which may be nil, is told of each peer that TLS then refuses for what
// it offers, before the handshake is over; it must not wait.
func HubTLS(certificate tls.Certificate, refused func(peer net.Addr, why HelloRefusal)) *tls.Config {
	config := baseTLS()
	config.Certificates = []tls.Certificate{certificate}
	config.SessionTicketsDisabled = true
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		// TLS itself refuses, with the alert that fits; this only names it.
		if why := judgeHello(hello); why != "" && refused != nil {
			refused(hello.Conn.RemoteAddr(), why)
		}
		return nil, nil
	}
	return config
}

// NodeTLS returns the node's side of TLS. It verifies no certificate: whoever
// answers has to prove itself in Noise, on this very session. It sends no name,
// the tunnel is dialled on the address alone (contract §10.1).
func NodeTLS() *tls.Config {
	config := baseTLS()
	config.InsecureSkipVerify = true
	return config
}

func baseTLS() *tls.Config {
	return &tls.Config{
		MinVersion:       tls.VersionTLS13,
		NextProtos:       []string{ALPN},
		CurvePreferences: []tls.CurveID{tls.X25519MLKEM768},
		VerifyConnection: checkTLS,
	}
}

// checkTLS holds what TLS agreed on against what was asked of it. It is a second
// look: a library or a setting of the runtime that let something else through
// would take the tunnel's secrecy without anybody noticing.
func checkTLS(state tls.ConnectionState) error {
	switch {
	case state.CurveID != tls.X25519MLKEM768:
		return ErrNoHybrid
	case state.NegotiatedProtocol != ALPN:
		return ErrOtherProtocol
	case state.Version != tls.VersionTLS13, state.DidResume:
		return errors.New("not a new tls 1.3 session")
	}
	return nil
}

// judgeHello tells why TLS will refuse a peer, if for what it offers.
func judgeHello(hello *tls.ClientHelloInfo) HelloRefusal {
	switch {
	case !slices.Contains(hello.SupportedProtos, ALPN):
		return HelloNoALPN
	case !slices.Contains(hello.SupportedCurves, tls.X25519MLKEM768):
		return HelloNoHybrid
	}
	return ""
}

// The alerts (RFC 8446 §6.2, RFC 7301 §3.2) in QUIC's error codes (RFC 9001
// §4.8) by which one end learns what the other one refused.
const (
	alertHandshakeFailure      quic.TransportErrorCode = 0x100 + 40
	alertNoApplicationProtocol quic.TransportErrorCode = 0x100 + 120
)

// NameTLSError names the two failures of TLS that say what to do about the
// other end: the error it returns is ErrNoHybrid or ErrOtherProtocol as well.
// Any other error is returned as it is.
func NameTLSError(err error) error {
	var transport *quic.TransportError
	if !errors.As(err, &transport) {
		return err
	}
	switch transport.ErrorCode {
	case alertHandshakeFailure:
		return fmt.Errorf("%w: %w", ErrNoHybrid, err)
	case alertNoApplicationProtocol:
		return fmt.Errorf("%w: %w", ErrOtherProtocol, err)
	}
	return err
}

// ExporterOf returns the secrets of a connection's TLS session.
func ExporterOf(connection *quic.Conn) Exporter {
	state := connection.ConnectionState().TLS
	return state.ExportKeyingMaterial
}
