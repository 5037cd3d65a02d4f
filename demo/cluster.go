package demo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// The names of the cluster that is shown. Those that end in .example belong to nobody
// (RFC 2606), and nothing is ever looked up.
const (
	relayHost   = "relay.example" // where nodes dial, once Cloudly has published it
	cloudlyHost = "localhost"
	appHost     = "app.example" // what the ingress serves
	relayNode   = "node-relay"  // the node that the relay runs on

	cloudlyName = "cloudly"
	ingressName = "ingress"
	browserName = "browser" // who asks the ingress
)

// loopback is the one host of everything here; the kernel chooses every port.
const loopback = "127.0.0.1:0"

// Reconnects of the simulated peers: theirs would begin with a second, for which
// nobody who watches wants to wait.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = time.Second
)

// cluster is everything that takes part: the relay, and the simulated peers around it.
// The steps own it one after the other; nothing of it is shared beyond what the peers
// themselves guard.
type cluster struct {
	cfg       Config
	authority *simulate.TLSAuthority // issues the certificates of Cloudly, the relay and the ingress
	cloudly   *simulate.Cloudly
	relay     *relay
	nodes     []*member // node-a, node-b, node-c
	network   contract.VPNNetwork

	site    *site             // the web server on node-b
	ingress *simulate.Ingress // on node-a
	edge    string            // where the ingress listens

	leases *leases
	begun  uint64   // the number of the event with which the release began
	heard  int      // reports that Cloudly had got when it went away
	closes []func() // ends what was started, the newest first
}

// newCluster makes the peers and starts none of them. Close ends what it made, also
// beside an error.
func newCluster(cfg Config) (*cluster, error) {
	c := &cluster{cfg: cfg}
	if err := c.makeAuthority(); err != nil {
		return c, err
	}
	certificate, err := c.certificate(cloudlyHost)
	if err != nil {
		return c, err
	}
	c.cloudly, err = simulate.NewCloudly(simulate.CloudlyConfig{
		Wall: time.Now, AllowLoopback: true, TLS: &tls.Config{Certificates: []tls.Certificate{certificate}},
	})
	if err != nil {
		return c, err
	}
	c.onClose(c.cloudly.Close)
	if _, err := c.cloudly.EnrollNode(relayNode); err != nil {
		return c, err
	}
	for i := range nodeNames {
		if err := c.enroll(i); err != nil {
			return c, err
		}
	}
	return c, nil
}

// makeAuthority makes what every certificate here is issued by.
func (c *cluster) makeAuthority() (err error) {
	c.authority, err = simulate.NewTLSAuthority(time.Now())
	return err
}

// certificate issues a certificate for a host.
func (c *cluster) certificate(host string) (tls.Certificate, error) {
	issued, err := c.authority.Issue(host)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair([]byte(issued.Chain), []byte(issued.PrivateKey))
}

// onClose has f called by close, before everything that was given earlier.
func (c *cluster) onClose(f func()) { c.closes = append(c.closes, f) }

// close ends everything that still runs. It may be called again.
func (c *cluster) close() {
	for len(c.closes) > 0 {
		last := len(c.closes) - 1
		f := c.closes[last]
		c.closes = c.closes[:last]
		f()
	}
}

// toRelay dials the relay's node listener, whatever name it is asked for.
func (c *cluster) toRelay(ctx context.Context, network, _ string) (net.Conn, error) {
	if c.relay == nil {
		return nil, errors.New("the relay is not started")
	}
	return new(net.Dialer).DialContext(ctx, network, c.relay.nodeListener())
}

// trust is what a peer needs to believe the relay's certificate.
func (c *cluster) trust() *tls.Config { return &tls.Config{RootCAs: c.authority.Pool()} }

// origin is where nodes and ingresses find the relay.
func (c *cluster) origin() string {
	_, port, _ := net.SplitHostPort(c.relay.nodeListener())
	return "https://" + net.JoinHostPort(relayHost, port)
}

// listen opens a listener on loopback.
func listen() (net.Listener, error) {
	l, err := net.Listen("tcp4", loopback)
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return l, nil
}
