package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"serve.zone/relay/appliance"
	"serve.zone/relay/config"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/credential"
	"serve.zone/relay/operator/client"
)

// relay is the appliance that `relay serve` runs, in this process.
type relay struct {
	*appliance.Appliance
	console console
	told    context.CancelFunc // to stop, as a SIGTERM tells it
	ended   chan struct{}
	err     error // of Run; read it once ended is closed
}

// The files that a relay is configured with. They are the only ones that the
// demonstration writes, beside the one that is downloaded.
const (
	credentialFile  = "credential"
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	authorityFile   = "cloudly-ca.pem"
	hubKeyFile      = "hub.key"
)

// writeFiles writes what the relay reads: its bearer, its certificate, the key of its
// hub, and whom to trust as Cloudly.
func (c *cluster) writeFiles() error {
	issued, err := c.authority.Issue(relayHost)
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		credentialFile: c.cloudly.Authorization(), certificateFile: issued.Chain, keyFile: issued.PrivateKey,
		authorityFile: string(c.authority.PEM()),
	} {
		if err := os.WriteFile(filepath.Join(c.cfg.Dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	key, err := node.GeneratePrivateKey(rand.Reader)
	if err != nil {
		return err
	}
	return credential.Create(filepath.Join(c.cfg.Dir, hubKeyFile), key)
}

// settings are those of a relay on loopback, read as `relay serve` reads its flags.
func (c *cluster) settings(cloudly string) (config.Config, error) {
	in := func(name string) string { return filepath.Join(c.cfg.Dir, name) }
	settings, _, err := config.Load(config.Sources{Flags: map[string]string{
		"cloudly-url": cloudly, "cloudly-ca-file": in(authorityFile), "credential-file": in(credentialFile),
		"node-id": relayNode, "allow-loopback": "true",
		"listen": loopback, "hub-listen": loopback, "hub-key-file": in(hubKeyFile), "operator-listen": loopback,
		"tls-cert-file": in(certificateFile), "tls-key-file": in(keyFile),
	}})
	return settings, err
}

// startRelay lets Cloudly serve, binds the relay, publishes where it is bound as the
// cluster's origin, and lets it run.
func (c *cluster) startRelay(ctx context.Context) error {
	upstream, err := listen()
	if err != nil {
		return err
	}
	if err := c.cloudly.Serve(upstream); err != nil {
		return err
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(upstream.Addr().String())
	cfg := c.cfg.Relay
	if cfg.Settings, err = c.settings("https://" + net.JoinHostPort(cloudlyHost, port)); err != nil {
		return err
	}
	next := c.cfg.Relay.Dial
	cfg.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return next(ctx, network, upstream.Addr().String()) // the name is for the certificate; nothing is looked up
	}
	var bound addresses
	cfg.Listen = bound.noting(c.cfg.Relay.Listen)

	a, err := appliance.New(cfg)
	if err != nil {
		return err
	}
	if err := a.Start(ctx); err != nil {
		return errors.Join(err, a.Close())
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.relay = &relay{Appliance: a, told: stop, ended: make(chan struct{})}
	c.relay.console = console{client.Client{Base: "http://" + bound.other(a.ListenAddr().String())}}
	if err := c.cloudly.EnableRelay(c.origin()); err != nil {
		stop()
		return errors.Join(err, a.Close())
	}
	go func() {
		defer close(c.relay.ended)
		c.relay.err = a.Run(run)
	}()
	c.onClose(func() { c.relay.stop() })
	return nil
}

// stop tells the relay to drain, as SIGTERM does, and returns when it has ended.
func (r *relay) stop() error {
	r.told()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(drainWait):
		return fmt.Errorf("the relay has not ended within %s", drainWait)
	}
}

// drainWait is more than a drain ever takes (design §8: 10 s).
const drainWait = 30 * time.Second

// nodeListener returns where nodes are to dial.
func (r *relay) nodeListener() string { return r.ListenAddr().String() }

// address returns the host and port of the operator endpoint.
func (r *relay) address() string { return r.console.Base[len("http://"):] }

// addresses are those that a relay has bound.
type addresses struct {
	mu  sync.Mutex
	all []string
}

// noting returns listen, with each address that it binds noted: the operator endpoint
// tells where everything else is bound, but somebody has to tell where it is itself.
func (a *addresses) noting(listen func(context.Context, string, string) (net.Listener, error)) func(context.Context, string, string) (net.Listener, error) {
	return func(ctx context.Context, network, address string) (net.Listener, error) {
		l, err := listen(ctx, network, address)
		if err == nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.all = append(a.all, l.Addr().String())
		}
		return l, err
	}
}

// other returns the address that is not this one; there are two.
func (a *addresses) other(than string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, address := range a.all {
		if address != than {
			return address
		}
	}
	return ""
}
