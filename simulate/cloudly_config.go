package simulate

import (
	"crypto/tls"
	"fmt"
	"net/netip"
	"time"

	"serve.zone/relay/contract"
)

// CloudlyConfig says what a simulated Cloudly is like at its start. Zero fields
// take the defaults that stand beside them.
type CloudlyConfig struct {
	// Wall is the clock that JWTs end by. It must be given.
	Wall func() time.Time
	// TLS makes the sockets wss; nil serves plain ones.
	TLS *tls.Config
	// Offer is this Cloudly's own; default DefaultOffer.
	Offer contract.Offer

	ClusterID        string       // default "cluster-a"
	RuntimeNamespace string       // of every session; default "default"
	Controller       contract.Raw // of every session; default {"kind":"cloudly"}
	// Origin is the relay origin that is published; empty means that nobody
	// enabled the cluster's relay.
	Origin string
	// Authorization is the bearer of the relay's first credential; default a
	// fresh one.
	Authorization string
	// HubPrefix is the part of the address plan that a hub lies in. The zero
	// prefix admits any address.
	HubPrefix netip.Prefix
	// AllowLoopback admits a relay that listens on a loopback address, which the
	// real Cloudly never does.
	AllowLoopback bool

	ExchangeMethod          string // default contract.DefaultMethodExchangeIdentity
	PushConfigurationMethod string // default contract.DefaultMethodPushConfiguration
	GetConfigurationMethod  string // default contract.DefaultMethodGetConfiguration
	// NodeMethods are methods that nodes may call beside those of the catalogue
	// (contract O14).
	NodeMethods []string

	// IdentityLife is how long a JWT lives; default DefaultIdentityLife.
	IdentityLife time.Duration
	// RecordLimit bounds the recorded messages in bytes; default
	// DefaultRecordLimit. A negative one records nothing and leaves envelopes
	// unjudged, for load.
	RecordLimit int
}

func (c CloudlyConfig) withDefaults() (CloudlyConfig, error) {
	if c.Wall == nil {
		return c, fmt.Errorf("simulated cloudly: %w", errNoWall)
	}
	if c.Offer == (contract.Offer{}) {
		c.Offer = DefaultOffer()
	}
	setText(&c.ClusterID, "cluster-a")
	setText(&c.RuntimeNamespace, "default")
	setText(&c.ExchangeMethod, contract.DefaultMethodExchangeIdentity)
	setText(&c.PushConfigurationMethod, contract.DefaultMethodPushConfiguration)
	setText(&c.GetConfigurationMethod, contract.DefaultMethodGetConfiguration)
	if c.Controller == nil {
		c.Controller = defaultController()
	}
	if c.Authorization == "" {
		c.Authorization = mintBearer()
	}
	if c.RecordLimit == 0 {
		c.RecordLimit = DefaultRecordLimit
	}
	if c.IdentityLife == 0 {
		c.IdentityLife = DefaultIdentityLife
	}
	return c, c.judge()
}

func (c CloudlyConfig) judge() error {
	if err := judgeOwnOffer(c.Offer); err != nil {
		return fmt.Errorf("simulated cloudly: %w", err)
	}
	switch {
	case !contract.IsIdentifier(c.ClusterID):
		return fmt.Errorf("simulated cloudly: ClusterID is not a canonical identifier")
	case !contract.IsIdentifier(c.RuntimeNamespace):
		return fmt.Errorf("simulated cloudly: RuntimeNamespace is not a canonical identifier")
	case !contract.IsRelayBearer(c.Authorization):
		return fmt.Errorf("simulated cloudly: Authorization is not a relay authorization")
	case c.Origin != "" && !contract.IsRelayOrigin(c.Origin):
		return fmt.Errorf("simulated cloudly: Origin is not a cluster relay origin")
	}
	return nil
}

// defaultController is the scope's controller as far as the seeds spell it.
func defaultController() contract.Raw { return contract.Raw(`{"kind":"cloudly"}`) }

func setText(field *string, value string) {
	if *field == "" {
		*field = value
	}
}
