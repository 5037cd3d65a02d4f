package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/hub/tunnel"
)

// A PrivateKey is a node's identity. It prints as its type only, whatever asks.
type PrivateKey = tunnel.PrivateKey

// A PublicKey is what a hub is known by, and what it knows a node by.
type PublicKey = contract.NoiseKey

// ParsePrivateKey reads the canonical base64 of a private key (contract §2.2).
func ParsePrivateKey(text string) (PrivateKey, error) { return tunnel.ParsePrivateKey(text) }

// GeneratePrivateKey makes a new private key out of random, which is crypto/rand.Reader
// outside tests.
func GeneratePrivateKey(random io.Reader) (PrivateKey, error) {
	return tunnel.GeneratePrivateKey(random)
}

// ParsePublicKey reads the canonical base64 of a public key (contract §2.2).
func ParsePublicKey(text string) (PublicKey, error) {
	key, ok := contract.ParseNoiseKey(text)
	if !ok {
		return PublicKey{}, errors.New("not the canonical base64 of a 32-byte public key")
	}
	return key, nil
}

// A Credential is a node's managed VPN credential (contract §7.4).
type Credential struct {
	Hub         netip.AddrPort
	HubKey      PublicKey
	AuthorityID string
	Key         PrivateKey
	// ExpiresAt is shown and nothing else: the hub ends the membership, by its own clock,
	// which is the one that counts. Zero if it is not known.
	ExpiresAt time.Time
}

func (c Credential) validate() error {
	switch {
	case !c.Hub.IsValid() || c.Hub.Port() == 0 || c.Hub.Addr().IsUnspecified():
		return errors.New("credential names no address of a hub")
	case c.HubKey == PublicKey{}:
		return errors.New("credential has no key of the hub")
	case c.Key.IsZero():
		return errors.New("credential has no private key")
	case len(c.AuthorityID) == 0 || len(c.AuthorityID) > tunnel.MaxAuthorityID:
		return tunnel.ErrAuthorityID
	}
	return nil
}

// ErrNoSuccessor is a credential that is not the successor of the one before: only its
// expiry may differ (contract §7.4).
var ErrNoSuccessor = errors.New("credential is no successor")

// succeeds tells what else than the expiry differs.
func (c Credential) succeeds(held Credential) error {
	differs := ""
	switch {
	case c.Hub != held.Hub:
		differs = "hub address"
	case c.HubKey != held.HubKey:
		differs = "hub key"
	case c.AuthorityID != held.AuthorityID:
		differs = "authority id"
	case c.Key.IsZero() || c.Key.Public() != held.Key.Public():
		differs = "key"
	default:
		return nil
	}
	return fmt.Errorf("%w: another %s", ErrNoSuccessor, differs)
}

// Config is what a Client is made from. Credential and Device must be set.
type Config struct {
	Credential Credential
	Device     Device

	// ListenPacket opens the socket of each attempt, in the form of package net; nil is
	// the system's. It is asked for any port of all addresses, so that the socket
	// outlives a change of the machine's address.
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)

	// OnState is told of each change of Status.State, in order, by the goroutine that
	// runs the client: it must not wait. It may be nil.
	OnState func(Status)

	Log *duty.Logger // nil says nothing
}

func (c Config) validate() error {
	if c.Device == nil {
		return errors.New("node has no device")
	}
	if size := c.Device.BatchSize(); size < 1 {
		return fmt.Errorf("device takes batches of %d packets", size)
	}
	return c.Credential.validate()
}
