package appliance

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/forward"
	"serve.zone/relay/hub"
	"serve.zone/relay/listener"
	"serve.zone/relay/operator"
	origincert "serve.zone/relay/tls"
	"serve.zone/relay/typedsocket"
)

// Appliance is one whole relay. Start, Run and Close are called in that order,
// each once; Reload and ListenAddr may be called at any time.
type Appliance struct {
	cfg    Config
	events *duty.Events

	trusted  *authorities
	cloudly  *cloudly.Session
	forward  *forward.Forward
	listener *listener.Listener
	cert     *origincert.Files
	operator *operator.Operator
	relay    *whole
	hub      *hub.Hub // nil: the relay has none
	later    []part   // the duties that stand on the session and the listener
	parts    []part   // all, in the order that they are told of things and drop custody
	serves   map[string]func(*typedsocket.Request)

	upstream atomic.Pointer[typedsocket.Socket] // that was registered last; nil before the first

	failed    chan error    // has room for the first failure
	recertify chan struct{} // has room for one
}

// New builds a relay and binds nothing. An error is one of the configuration.
func New(cfg Config) (*Appliance, error) { return build(cfg, nil, nil) }

// build builds a relay with more duties than its own, which tests record with.
func build(cfg Config, kinds []duty.EventKind, more func(*Appliance) []part) (*Appliance, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	trusted := &authorities{file: cfg.Settings.Cloudly.CAFile, wall: cfg.Wall}
	if err := trusted.load(); err != nil {
		return nil, err
	}
	known, err := catalogue(kinds)
	if err != nil {
		return nil, err
	}
	a := &Appliance{cfg: cfg, trusted: trusted, failed: make(chan error, 1), recertify: make(chan struct{}, 1)}
	a.events = duty.NewEvents(duty.EventsConfig{Catalogue: known, Log: cfg.Log, Wall: cfg.Wall})
	a.relay = newWhole(cfg, trusted)
	a.cert = origincert.NewFiles(origincert.FilesConfig{
		CertFile: cfg.Settings.TLS.CertFile, KeyFile: cfg.Settings.TLS.KeyFile, Wall: cfg.Wall, Events: a.events,
	})
	if a.forward, err = forward.New(a.forwardConfig()); err != nil {
		return nil, err
	}
	from := &origin{
		matches: a.cert.Matches, served: func() bool { return !a.cert.NotAfter().IsZero() },
		bound: a.ListenAddr, wall: cfg.Wall, events: a.events,
	}
	if a.later, err = a.duties(); err != nil {
		return nil, err
	}
	if more != nil {
		a.later = append(a.later, more(a)...)
	}
	upstream := a.cloudlyConfig()
	if err := upstream.Validate(); err != nil {
		return nil, err // Run would find it too, but by then much is bound (contract §4)
	}
	a.cloudly = cloudly.New(upstream)
	a.listener = listener.New(a.listenerConfig())

	// forward is dropped before the listener, so that the end of a binding has its own
	// reason; both before the later duties, which are suspended first.
	a.parts = append([]part{
		{duty: a.relay},
		{duty: a.cloudly, metrics: a.cloudly.Metrics(), run: a.cloudly.Run, reload: a.reloadCloudly},
		{duty: a.forward, metrics: a.forward.Metrics()},
		{duty: a.listener, metrics: a.listener.Metrics()},
		{duty: origincert.Duty{Source: a.cert, Wall: cfg.Wall}, metrics: a.cert.Metrics(), run: a.watchCertificate, reload: a.reloadCertificate},
		{duty: from, run: from.run, registered: from.registered},
	}, a.later...)
	if a.serves, err = served(a.parts); err != nil {
		return nil, err
	}
	a.operator = operator.New(a.operatorConfig())
	return a, nil
}

func (a *Appliance) cloudlyConfig() cloudly.Config {
	s := a.cfg.Settings
	c := cloudly.Config{
		URL: s.Cloudly.URL, SocketPath: s.Protocol.SocketPath,
		TLS: a.trusted.config, Dial: a.cfg.Dial, Wall: a.cfg.Wall,
		Credential: cloudly.CredentialFile(s.Cloudly.CredentialFile),
		Offer:      s.Protocol.Offer, Facts: a.facts, AllowLoopback: s.AllowLoopback,
		Methods: cloudly.Methods{
			ExchangeIdentity:  s.Protocol.ExchangeMethod,
			PushConfiguration: s.Protocol.ConfigurationPushMethod,
			GetConfiguration:  s.Protocol.ConfigurationPullMethod,
		},
		Handler: typedsocket.HandlerFunc(a.cloudlyRequest),
		Hooks:   a.hooks(),
		Log:     a.cfg.Log, Events: a.events,
	}
	for _, p := range a.later {
		c.Pulls = append(c.Pulls, p.pulls...)
	}
	return c
}

func (a *Appliance) listenerConfig() listener.Config {
	c := listener.Config{
		Listen: a.cfg.Listen, Address: a.cfg.Settings.Listen, GetCertificate: a.cert.GetCertificate,
		Routes: a.nodeRoutes(a.cfg.Settings.Protocol.NodeToCloudly),
		Log:    a.cfg.Log, Events: a.events,
	}
	for _, p := range a.later {
		c.Routes = append(c.Routes, p.routes...)
	}
	return c
}

func (a *Appliance) operatorConfig() operator.Config {
	c := operator.Config{
		Listen: a.cfg.Listen, Address: a.cfg.Settings.OperatorListen,
		Events: a.events, Wall: a.cfg.Wall, Log: a.cfg.Log,
		Build: operator.Build{Version: a.cfg.Build.Version, Revision: a.cfg.Build.Revision},
	}
	if a.hub != nil {
		c.Explain = a.explain
	}
	for _, p := range a.parts {
		c.Duties = append(c.Duties, p.duty)
		if p.metrics != nil {
			c.Metrics = append(c.Metrics, p.metrics)
		}
	}
	c.Metrics = append(c.Metrics, a.events.Metrics(), a.cfg.Log.Metrics())
	return c
}

// facts are what was really bound (contract §5.3).
func (a *Appliance) facts() contract.RelayFacts {
	bound := a.ListenAddr()
	facts := contract.RelayFacts{
		Version: a.cfg.Build.Version, NodeID: a.cfg.Settings.NodeID,
		ListenAddress: bound.Addr().String(), ListenPort: int64(bound.Port()),
	}
	if a.hub != nil {
		h := a.hub.Facts()
		facts.VPNHub = &h
	}
	return facts
}

// ListenAddr returns where the node listener is bound; invalid before Start.
func (a *Appliance) ListenAddr() netip.AddrPort { return a.listener.Addr() }

// Start loads the certificate and binds the operator endpoint, the node listener
// and the hub (contract §5.6, steps 2 and 3). On an error nothing stays bound. A
// certificate that cannot be used yet is none: it is waited for, and readiness
// says so.
func (a *Appliance) Start(ctx context.Context) error {
	a.cert.Reload() // why it was refused is an event of the source's
	if err := a.operator.Bind(ctx); err != nil {
		return fmt.Errorf("appliance: %w", err)
	}
	if err := a.listener.Bind(ctx); err != nil {
		return errors.Join(fmt.Errorf("appliance: %w", err), a.operator.Close())
	}
	if a.hub == nil {
		return nil
	}
	if err := a.hub.Bind(ctx); err != nil {
		return errors.Join(fmt.Errorf("appliance: %w", err), a.listener.Close(), a.operator.Close())
	}
	return nil
}

// Reload reads the credential, the certificate and the authorities of Cloudly
// again, as on SIGHUP, and has Cloudly dialled at once if that is waited for. Of
// the files it waits for that of the authorities.
func (a *Appliance) Reload() {
	a.events.Publish(EventReloaded)
	for _, p := range a.parts {
		if p.reload != nil {
			p.reload()
		}
	}
}

// reloadCloudly reads what the session to Cloudly stands on. Authorities that cannot
// be read leave those before.
func (a *Appliance) reloadCloudly() {
	if err := a.trusted.load(); err != nil {
		a.events.Publish(EventAuthoritiesRefused, field.Error(err))
	}
	a.cloudly.Reload()
	a.cloudly.Kick()
}

// fail notes the first failure that the relay cannot go on from.
func (a *Appliance) fail(err error) {
	select {
	case a.failed <- err:
	default:
	}
}
