package simulate

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"serve.zone/relay/contract"
)

// PalletConfig says what a simulated Pallet is like. Zero fields take the
// defaults that stand beside them.
type PalletConfig struct {
	// URL is where the node's sessions go: the relay's origin as a ws, wss, http
	// or https URL.
	URL string
	// TLS is used for wss and https; nil means the defaults of crypto/tls.
	TLS *tls.Config
	// Dial opens connections; nil uses a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wall is the node's qualified clock, by which renewals are admitted. It must
	// be given.
	Wall func() time.Time

	NodeID     string
	Credential NodeCredential
	// Offer is this build's own; default DefaultOffer.
	Offer contract.Offer
	// ResolvedAuthorities are what this build can resolve, sorted; default all.
	ResolvedAuthorities []string

	// Nonce is that of the first process start; default a fresh one.
	Nonce string

	// RuntimeNamespace and Controller are the scope that the node trusts; default
	// "default" and {"kind":"cloudly"}.
	RuntimeNamespace string
	Controller       contract.Raw
	// Authority is the signing authority in the node's trust; without one every
	// renewal is refused.
	Authority Authority

	// PushMethods are methods that a node serves beside those of the catalogue
	// (contract O14).
	PushMethods []string

	// FirstBackoff and LastBackoff bound the wait before the next attempt, which
	// doubles from one to the other; default DefaultFirstBackoff and
	// DefaultLastBackoff. Half of each wait is random.
	FirstBackoff, LastBackoff time.Duration
	// Random returns a number from 0 up to 1 for that half; default a random one.
	Random func() float64

	// Spell rewrites the bodies that the node composes before they are sent, so
	// that they are spelled unusually; default as they are.
	Spell func(body []byte) []byte

	// RecordLimit bounds the recorded messages in bytes; default
	// DefaultNodeRecordLimit. A negative one records nothing and leaves envelopes
	// unjudged, for load.
	RecordLimit int
}

func (c PalletConfig) withDefaults() (PalletConfig, error) {
	if c.Wall == nil {
		return c, fmt.Errorf("simulated pallet: %w", errNoWall)
	}
	if c.Offer == (contract.Offer{}) {
		c.Offer = DefaultOffer()
	}
	if c.ResolvedAuthorities == nil {
		c.ResolvedAuthorities = slices.Clone(workloadAuthorities)
	}
	setText(&c.RuntimeNamespace, "default")
	if c.Controller == nil {
		c.Controller = defaultController()
	}
	if c.FirstBackoff == 0 {
		c.FirstBackoff = DefaultFirstBackoff
	}
	if c.LastBackoff == 0 {
		c.LastBackoff = max(DefaultLastBackoff, c.FirstBackoff)
	}
	if c.Nonce == "" {
		c.Nonce = newNonce()
	}
	if c.Spell == nil {
		c.Spell = func(body []byte) []byte { return body }
	}
	if c.RecordLimit == 0 {
		c.RecordLimit = DefaultNodeRecordLimit
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	if err := judgeOwnOffer(c.Offer); err != nil {
		return c, fmt.Errorf("simulated pallet: %w", err)
	}
	if !contract.IsInstanceNonce(c.Nonce) {
		return c, fmt.Errorf("simulated pallet: Nonce is not a canonical lower-case uuid")
	}
	return c, nil
}

// scope is the node scope in the node's own trust.
func (c PalletConfig) scope() contract.NodeScope {
	return contract.NodeScope{Controller: c.Controller, NodeID: c.NodeID, RuntimeNamespace: c.RuntimeNamespace}
}
