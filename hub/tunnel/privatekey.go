package tunnel

import (
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"serve.zone/relay/contract"
)

// A PrivateKey is an X25519 private key: a hub's or a member's identity. It
// prints as its type only, whatever asks. Only IsZero tells keys apart, not ==.
type PrivateKey struct {
	scalar hidden[[KeySize]byte]
	public contract.NoiseKey
}

// ErrPrivateKey is the refusal of a text or bytes that are no private key.
var ErrPrivateKey = errors.New("not the canonical base64 of a 32-byte private key")

// NewPrivateKey takes 32 bytes as a private key.
func NewPrivateKey(scalar [KeySize]byte) (PrivateKey, error) {
	key, err := ecdh.X25519().NewPrivateKey(scalar[:])
	if err != nil {
		return PrivateKey{}, ErrPrivateKey
	}
	return PrivateKey{hide(scalar), contract.NoiseKey(key.PublicKey().Bytes())}, nil
}

// GeneratePrivateKey makes a new private key out of random, which is
// crypto/rand.Reader outside tests.
func GeneratePrivateKey(random io.Reader) (PrivateKey, error) {
	var scalar [KeySize]byte
	if _, err := io.ReadFull(random, scalar[:]); err != nil {
		return PrivateKey{}, fmt.Errorf("generate private key: %w", err)
	}
	return NewPrivateKey(scalar)
}

// ParsePrivateKey reads the one canonical base64 encoding of 32 bytes, the
// encoding of every Noise key of the contract (contract §2.2).
func ParsePrivateKey(text string) (PrivateKey, error) {
	scalar, ok := contract.ParseNoiseKey(text)
	if !ok {
		return PrivateKey{}, ErrPrivateKey
	}
	return NewPrivateKey(scalar)
}

// Public returns the public key.
func (k PrivateKey) Public() contract.NoiseKey { return k.public }

// Secret returns what ParsePrivateKey reads, of a key that is not zero. It is
// for key files alone.
func (k PrivateKey) Secret() string { return base64.StdEncoding.EncodeToString(k.scalar.get()[:]) }

// IsZero reports whether k holds no key.
func (k PrivateKey) IsZero() bool { return k.scalar.get() == nil }

// exchange returns the X25519 secret shared with the owner of public. A public
// key of low order is refused: the secret would not depend on this key.
func (k PrivateKey) exchange(public [KeySize]byte) (secret [KeySize]byte, err error) {
	own, err := ecdh.X25519().NewPrivateKey(k.scalar.get()[:])
	if err != nil {
		return secret, err
	}
	peer, err := ecdh.X25519().NewPublicKey(public[:])
	if err != nil {
		return secret, err
	}
	shared, err := own.ECDH(peer)
	if err != nil {
		return secret, err
	}
	return [KeySize]byte(shared), nil
}

const redacted = "tunnel.PrivateKey(redacted)"

// String keeps the key out of texts.
func (k PrivateKey) String() string { return redacted }

// GoString keeps the key out of texts.
func (k PrivateKey) GoString() string { return redacted }

// Format keeps the key out of texts, whatever the verb.
func (k PrivateKey) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// MarshalText keeps the key out of every encoding, log handlers' included.
func (k PrivateKey) MarshalText() ([]byte, error) { return []byte(redacted), nil }
