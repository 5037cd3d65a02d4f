package demo

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// publish starts an ingress on node-a, gives it a route to the web server on node-b,
// and sends an HTTPS request through it.
func (c *cluster) publish(ctx context.Context, e *evidence) error {
	if err := c.startIngress(); err != nil {
		return err
	}
	if _, err := c.ingress.WaitRegistered(ctx, 0); err != nil {
		return err
	}
	certificate, err := c.authority.Issue(appHost)
	if err != nil {
		return err
	}
	table, err := c.cloudly.PublishRoutes(ctx, []simulate.IngressRoute{{
		Hostname: appHost, Certificate: certificate,
		Destinations: []contract.Destination{{Address: c.site.address.Addr().String(), Port: webPort}},
	}}, nil)
	if err != nil {
		return err
	}
	if err := c.ingress.WaitRevision(ctx, table.Revision); err != nil {
		return err
	}
	d, err := c.relay.console.until(ctx, func(d document) error {
		s := d.Duties.Ingress
		if s.Table == nil || s.Table.Revision != table.Revision || s.Table.Routes != uint64(len(table.Routes)) ||
			len(s.Ingresses) != 1 || s.Ingresses[0].Pulled != table.Revision || s.Ingresses[0].Node != nodeNames[nodeA] {
			return mismatch(fmt.Sprintf("table %d with %s pulled by the ingress on %s", table.Revision, count(len(table.Routes), "route"), nodeNames[nodeA]), "%+v", s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s := d.Duties.Ingress
	e.add(fromStatus, fmt.Sprintf("route table %d (%s) is held, and the ingress on %s has pulled it", s.Table.Revision, count(s.Table.Routes, "route"), s.Ingresses[0].Node),
		"revision", s.Table.Revision, "routes", s.Table.Routes)
	return c.visit(ctx, e)
}

// startIngress starts an ingress on node-a. What it forwards goes into node-a's tunnel.
func (c *cluster) startIngress() error {
	m := c.nodes[nodeA]
	bearer, err := c.cloudly.DesignateIngress(m.name)
	if err != nil {
		return err
	}
	c.ingress, err = simulate.NewIngress(simulate.IngressConfig{
		URL: c.origin(), TLS: c.trust(), Dial: c.toRelay, Wall: time.Now,
		NodeID: m.name, Bearer: bearer, DialBackend: m.stack.DialContext,
		FirstBackoff: firstBackoff, LastBackoff: lastBackoff,
	})
	if err != nil {
		return err
	}
	c.onClose(c.ingress.Close)
	l, err := listen()
	if err != nil {
		return err
	}
	c.edge = l.Addr().String()
	if err := c.ingress.Serve(l); err != nil {
		return err
	}
	return c.ingress.Start()
}

// visit sends one HTTPS request to the ingress and compares the certificate that it
// meets with the one in the table that the ingress pulled.
func (c *cluster) visit(ctx context.Context, e *evidence) error {
	before, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	body, met, err := c.browse(ctx)
	if err != nil {
		return err
	}
	after, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	table, ok := c.ingress.Table()
	if !ok {
		return mismatch("a table at the ingress", "none")
	}
	pulled, err := certificateOf(table.Encoded)
	if err != nil {
		return err
	}
	if body != hello || met != pulled {
		return mismatch("node-b's page under the certificate of the table", "%q under %s, the table has %s", body, met, pulled)
	}
	e.add(browserName, fmt.Sprintf("GET https://%s/ = 200 %q", appHost, strings.TrimSpace(body)), "body", body)
	e.add(browserName, fmt.Sprintf("met the certificate %s..., that of the table which the ingress has pulled", met[:16]), "certificate", met, "pulled", pulled)
	asked, answered := after.since(before, nodeNames[nodeA]), after.since(before, nodeNames[nodeB])
	if asked == 0 || answered == 0 {
		return mismatch("the request to pass the hub", "%d packets from node-a and %d from node-b", asked, answered)
	}
	e.add(fromStatus, fmt.Sprintf("meanwhile the hub relayed %s from node-a, where the ingress is, and %d from node-b",
		count(asked, "packet"), answered), "fromIngress", asked, "fromServer", answered)
	counted, err := c.counted(ctx)
	if err != nil {
		return err
	}
	e.add(cloudlyName, fmt.Sprintf("reads the ingress's counters through the relay: %s for %s", count(counted, "request"), appHost), "requests", counted)
	return nil
}

// since is how many packets a member has sent since an earlier document.
func (d document) since(before document, name string) uint64 {
	return d.member(name).FromPackets - before.member(name).FromPackets
}

// browse sends an HTTPS request for the published name, and returns the page and the
// SHA-256 of the certificate that it met.
func (c *cluster) browse(ctx context.Context) (body, certificate string, err error) {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, c.edge)
		},
		TLSClientConfig: &tls.Config{RootCAs: c.authority.Pool()}, DisableKeepAlives: true,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+appHost+"/", nil)
	if err != nil {
		return "", "", err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err == nil && response.StatusCode != http.StatusOK {
		err = mismatch("status 200 from https://"+appHost+"/", "%s", response.Status)
	}
	return string(text), fingerprint(response.TLS.PeerCertificates[0].Raw), err
}

// fingerprint is the SHA-256 of a certificate, in hex.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// certificateOf returns the fingerprint of the certificate of a table's first route.
func certificateOf(table []byte) (string, error) {
	chain, err := firstChain(table)
	if err != nil {
		return "", mismatch("a table with a route", "%v", err)
	}
	block, _ := pem.Decode([]byte(chain))
	if block == nil {
		return "", mismatch("a certificate in the table", "none")
	}
	return fingerprint(block.Bytes), nil
}

// counted reads the traffic counters of today and yesterday (a day may just have
// ended), and returns the requests of the published name.
func (c *cluster) counted(ctx context.Context) (int64, error) {
	now := time.Now().UTC()
	buckets, err := c.cloudly.ReadTraffic(ctx, now.Add(-24*time.Hour).Format(time.DateOnly), now.Format(time.DateOnly), 100)
	if err != nil {
		return 0, err
	}
	var requests int64
	for _, b := range buckets {
		if b.Hostname == appHost {
			requests += b.Requests
		}
	}
	if requests == 0 {
		return 0, mismatch("a counted request for "+appHost, "none in %d buckets", len(buckets))
	}
	return requests, nil
}
