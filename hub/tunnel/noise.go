package tunnel

import (
	"errors"
	"fmt"
	"io"

	"github.com/flynn/noise"

	"serve.zone/relay/contract"
)

// An Exporter derives a secret from the TLS session under the tunnel, as
// tls.ConnectionState.ExportKeyingMaterial does (RFC 8446 §7.5).
type Exporter func(label string, context []byte, length int) ([]byte, error)

var (
	// ErrNotAuthentic is a Noise message that does not open: its sender holds
	// other keys, means another hub or authority, or sits at another TLS session
	// than the reader, as whoever relays the messages of two others does.
	ErrNotAuthentic = errors.New("noise message is not authentic")

	// ErrAuthorityID is an authority id that no prologue can hold.
	ErrAuthorityID = fmt.Errorf("authority id is not 1 to %d bytes", MaxAuthorityID)

	// ErrExporter is a TLS session that gives no secret.
	ErrExporter = errors.New("tls session exports no secret")
)

// The lengths that Noise adds to a payload: an ephemeral key, the static key
// with its tag, and the payload's tag; and without the static key.
const (
	initiationOverhead = 32 + 32 + 16 + 16
	responseOverhead   = 32 + 16
)

// prologue returns what both ends must agree on before Noise begins: the
// protocol, whose network it is, and the TLS session that the messages cross.
func prologue(authorityID string, export Exporter) ([]byte, error) {
	if len(authorityID) == 0 || len(authorityID) > MaxAuthorityID {
		return nil, ErrAuthorityID
	}
	bind, err := exportSecret(export, bindLabel, nil)
	if err != nil {
		return nil, err
	}
	p := make([]byte, 0, len(prologueLabel)+1+len(authorityID)+len(bind))
	p = append(p, prologueLabel...)
	p = append(p, byte(len(authorityID)))
	p = append(p, authorityID...)
	return append(p, bind[:]...), nil
}

// exportSecret asks the TLS session for a secret of KeySize bytes.
func exportSecret(export Exporter, label string, context []byte) (secret [KeySize]byte, err error) {
	b, err := export(label, context, KeySize)
	if err != nil {
		return secret, fmt.Errorf("%w: %w", ErrExporter, err)
	}
	if len(b) != KeySize {
		return secret, fmt.Errorf("%w: %d bytes instead of %d", ErrExporter, len(b), KeySize)
	}
	return [KeySize]byte(b), nil
}

// newNoise begins a handshake on one side. hub is the key that the node knows;
// random is crypto/rand's where nil.
func newNoise(side Side, static PrivateKey, hub contract.NoiseKey, prologue []byte, random io.Reader) (*noise.HandshakeState, error) {
	config := noise.Config{
		CipherSuite:   noise.NewCipherSuite(noise.DH25519, noise.CipherChaChaPoly, noise.HashBLAKE2s),
		Random:        random,
		Pattern:       noise.HandshakeIK,
		Initiator:     side == Node,
		Prologue:      prologue,
		StaticKeypair: noise.DHKey{Private: static.scalar.get()[:], Public: static.public[:]},
	}
	if side == Node {
		config.PeerStatic = hub[:]
	}
	return noise.NewHandshakeState(config)
}
