package cloudly

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// Name is the name of this duty.
const Name = "cloudly"

// Config is what a Session is made from.
type Config struct {
	// URL is Cloudly's origin, https, or http to a loopback address.
	URL string
	// SocketPath is the path of the socket below it; "/" if empty.
	SocketPath string
	// TLS returns what is used for https, for each attempt anew, so that its roots
	// can change; nil means the defaults of crypto/tls.
	TLS func() *tls.Config
	// Dial opens connections; nil uses the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wall is the wall clock; time.Now if nil. The age of an identity is judged
	// by it, and what is shown bears its times.
	Wall func() time.Time

	// Credential is where the bearer comes from.
	Credential CredentialSource
	// Offer is the relay's own.
	Offer contract.Offer
	// Facts returns what was really bound (contract §5.3). The loop calls it for
	// every registration; it must not block.
	Facts func() contract.RelayFacts
	// AllowLoopback admits a loopback listen address in the facts, for tests.
	AllowLoopback bool
	// StrictAnswers refuses unknown members in the answer to a registration.
	StrictAnswers bool

	// Methods are the names that the seeds leave open; empty ones are the
	// contract's decisions.
	Methods Methods

	// Handler serves the requests of Cloudly, other than configuration pushes,
	// while the session stands; nil has none. It must not block, and it must not
	// wait for a hook.
	Handler typedsocket.Handler
	// Hooks are told what happens.
	Hooks Hooks
	// Pulls run after every accepted registration (contract §5.6, step 9), each by
	// itself. One that fails is tried again while the session stands; its failure
	// never ends the session. They call by Session.Call, which hears custody refusals.
	// A pull returns soon when its context ends, and takes nothing over after that.
	Pulls []func(ctx context.Context, sock *typedsocket.Socket) error

	Log    *duty.Logger
	Events *duty.Events // of a catalogue with EventKinds; nil publishes nothing
}

// Methods are names of methods of Cloudly that configuration can change.
type Methods struct {
	ExchangeIdentity  string // contract.DefaultMethodExchangeIdentity if empty
	PushConfiguration string // contract.DefaultMethodPushConfiguration if empty
	GetConfiguration  string // contract.DefaultMethodGetConfiguration if empty
}

// Hooks are called by the session's loop (but for OnCustodyHeard), in the order of
// what happened, never two at once. What comes next waits for them, so they must not wait for the network
// nor for anything that waits for the session. Any of them may be nil.
type Hooks struct {
	// OnRegistered is called for every accepted registration, before anything
	// that Cloudly sends behind it is served.
	OnRegistered func(sock *typedsocket.Socket, accepted Accepted)
	// OnLost is called once after an OnRegistered that was the first on its
	// socket, when that session is over. After an end of custody it follows
	// OnCustodyEnded.
	OnLost func(why error)
	// OnCustodyHeard is called as soon as a refusal was read that ends custody, on
	// whichever goroutine read it and before anything behind it is looked at: from
	// now on nothing more is forwarded over sock. OnCustodyEnded follows, or OnLost.
	// It may be called more than once, must not block, and may call nothing of the
	// session.
	OnCustodyHeard func(sock *typedsocket.Socket)
	// OnCustodyEnded drops what the relay holds for its nodes (contract §6.2).
	// Nothing is sent and no request is served before it returns. It is called once
	// more when a pull that was under way ended only afterwards.
	OnCustodyEnded func(name contract.RefusalName)
	// OnConfiguration is called with every configuration that was pushed or
	// pulled while the session stands, its relay block stated or not valid. One
	// without relay block ends custody instead.
	OnConfiguration func(configuration contract.ClusterConfiguration)
}

// Accepted is an accepted registration.
type Accepted struct {
	First    bool  // on this socket
	Sequence int64 // the number it was sent with
	Answer   contract.RelayRegistrationAnswer
}

// Validate returns what is wrong with the configuration. An offer of our own that
// does not hold ends the start (contract §4).
func (c Config) Validate() error {
	origin, ok := contract.ParseOrigin(c.URL)
	switch {
	case !ok:
		return errors.New("cloudly: the URL is not an origin")
	case origin.Scheme == "http" && !isLoopback(origin.Host):
		return errors.New("cloudly: http is allowed to a loopback address alone")
	case c.SocketPath != "" && !strings.HasPrefix(c.SocketPath, "/"):
		return errors.New("cloudly: the socket path does not begin with a slash")
	case c.Credential == nil:
		return errors.New("cloudly: no credential source")
	case c.Facts == nil:
		return errors.New("cloudly: no facts to register")
	}
	if reasons := c.Offer.Validate(); len(reasons) > 0 {
		return fmt.Errorf("cloudly: own offer: %s", reasons[0])
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// withDefaults fills what was left out.
func (c Config) withDefaults() Config {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&c.SocketPath, "/")
	set(&c.Methods.ExchangeIdentity, contract.DefaultMethodExchangeIdentity)
	set(&c.Methods.PushConfiguration, contract.DefaultMethodPushConfiguration)
	set(&c.Methods.GetConfiguration, contract.DefaultMethodGetConfiguration)
	if c.Wall == nil {
		c.Wall = time.Now
	}
	return c
}
