package simulate

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"serve.zone/relay/contract"
)

// IngressConfig says what a simulated ingress is like. Zero fields take the
// defaults that stand beside them.
type IngressConfig struct {
	// URL is the relay's origin as a ws, wss, http or https URL
	// (SERVEZONE_CLUSTER_RELAY_ORIGIN).
	URL string
	// TLS is used for wss and https; nil means the defaults of crypto/tls.
	TLS *tls.Config
	// Dial opens the connection to the relay; nil uses a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wall is the clock whose UTC day traffic is counted under. It must be given.
	Wall func() time.Time

	NodeID string // SERVEZONE_CLUSTER_NODE_ID
	Bearer string // SERVEZONE_CLUSTER_INGRESS_BEARER
	// Version is the ingress's own; default "1.0.0".
	Version string
	// Capabilities is stated in the registration when it is not nil.
	Capabilities contract.Raw
	// Offer is this build's own; default DefaultOffer.
	Offer contract.Offer
	// RelayOffer is the offer that accepted answers must carry: the relay's own
	// (contract O16). The zero offer admits any that goes with Offer.
	RelayOffer contract.Offer

	// DialBackend opens connections to the destinations of routes; nil uses a
	// net.Dialer.
	DialBackend func(ctx context.Context, network, address string) (net.Conn, error)
	// Traffic is what an earlier process of this ingress counted: its buckets
	// survive a restart.
	Traffic []TrafficBucket

	// FirstBackoff and LastBackoff bound the wait before the next attempt, which
	// doubles from one to the other; default DefaultFirstBackoff and
	// DefaultLastBackoff. Half of each wait is random.
	FirstBackoff, LastBackoff time.Duration
	// Random returns a number from 0 up to 1 for that half; default a random one.
	Random func() float64

	// Spell rewrites the bodies that the ingress composes before they are sent, so
	// that they are spelled unusually; default as they are.
	Spell func(body []byte) []byte

	// RecordLimit bounds the recorded messages in bytes; default
	// DefaultRecordLimit, since a route table is large. A negative one records
	// nothing and leaves envelopes unjudged, for load.
	RecordLimit int
}

func (c IngressConfig) withDefaults() (IngressConfig, error) {
	if c.Wall == nil {
		return c, fmt.Errorf("simulated ingress: %w", errNoWall)
	}
	if c.Offer == (contract.Offer{}) {
		c.Offer = DefaultOffer()
	}
	setText(&c.Version, "1.0.0")
	if c.DialBackend == nil {
		c.DialBackend = new(net.Dialer).DialContext
	}
	if c.FirstBackoff == 0 {
		c.FirstBackoff = DefaultFirstBackoff
	}
	if c.LastBackoff == 0 {
		c.LastBackoff = max(DefaultLastBackoff, c.FirstBackoff)
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	if c.Spell == nil {
		c.Spell = func(body []byte) []byte { return body }
	}
	if c.RecordLimit == 0 {
		c.RecordLimit = DefaultRecordLimit
	}
	if err := judgeOwnOffer(c.Offer); err != nil {
		return c, fmt.Errorf("simulated ingress: %w", err)
	}
	return c, nil
}
