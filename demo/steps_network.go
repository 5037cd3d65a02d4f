package demo

import (
	"context"
	"fmt"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/operator/client"
)

// join applies the first network and starts the nodes' tunnels.
func (c *cluster) join(ctx context.Context, e *evidence) error {
	c.network = contract.VPNNetwork{AuthorityID: authorityID, ControlPrefix: controlPrefix}
	for i, m := range c.nodes {
		x, err := c.memberOf(i)
		if err != nil {
			return err
		}
		c.network.Nodes = append(c.network.Nodes, x)
		if err := c.project(m); err != nil {
			return err
		}
	}
	between := grants([2]int{nodeA, nodeB}, [2]int{nodeB, nodeA})
	if c.cfg.Break == BreakGrant {
		between = grants([2]int{nodeB, nodeA}) // the one that a download asks by is withdrawn
	}
	if _, err := c.apply(ctx, between); err != nil {
		return err
	}
	for _, m := range c.nodes {
		if err := c.connect(ctx, m); err != nil {
			return err
		}
	}
	d, err := c.relay.console.until(ctx, c.tunnelled)
	if err != nil {
		return err
	}
	n, err := c.inForce(e, d)
	if err != nil {
		return err
	}
	e.add(fromStatus, fmt.Sprintf("revision %d of it is in force: %s, %s", n.Revision, count(n.Members, "member"), count(n.Grants, "grant")),
		"revision", n.Revision, "state", n.State, "members", n.Members, "grants", n.Grants)
	for _, m := range c.nodes {
		t, x := m.tunnel.Status().Tunnel, d.member(m.name)
		if t == nil {
			return mismatch("a tunnel of "+m.name, "none")
		}
		e.add(m.name, fmt.Sprintf("has a tunnel as %s for %s: %.1f ms to the hub and back, inner MTU %d",
			t.ControlAddress.Addr(), m.address, x.Session.RTTSeconds*1000, t.InnerMTU),
			"control", t.ControlAddress.Addr(), "workload", m.address, "rttSeconds", x.Session.RTTSeconds, "lane", x.Session.Lane)
	}
	return nil
}

// tunnelled says which node has no tunnel yet that is up at both ends, and whose way the
// hub has measured.
func (c *cluster) tunnelled(d document) error {
	for _, m := range c.nodes {
		expected := "the tunnel of " + m.name + " up at both ends"
		s, x := m.tunnel.Status(), d.member(m.name).Session
		switch {
		case s.State != node.StateUp || x == nil:
			return mismatch(expected, "%s at the node, its last end %+v", s.State, s.Last)
		case x.RTTSeconds <= 0 || x.Lane == "":
			return mismatch(expected, "a session at the hub whose way takes %g s, on the lane %q", x.RTTSeconds, x.Lane)
		}
	}
	return nil
}

// connectWait is how long a connection between two nodes that may speak to each other
// can take: gVisor repeats a lost SYN after a second.
const connectWait = 5 * time.Second

// download starts a web server on node-b, and lets node-a download its file.
func (c *cluster) download(ctx context.Context, e *evidence) error {
	if err := c.serveSite(ctx, c.nodes[nodeB]); err != nil {
		return err
	}
	return c.downloaded(ctx, e, c.nodes[nodeA])
}

// downloaded lets a node download the file of node-b, and shows what both ends and the
// hub have counted.
func (c *cluster) downloaded(ctx context.Context, e *evidence, m *member) error {
	before, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	if err := c.reaches(ctx, m, before.member(m.name)); err != nil {
		c.explained(ctx, e, m, false) // beside the mismatch, which counts
		return err
	}
	d, err := fetch(ctx, m.stack.DialContext, c.site.url(filePage))
	if err != nil {
		return mismatch(fmt.Sprintf("a download of %s", sizeText(c.site.size)), "%v after %d bytes", err, d.bytes)
	}
	if d.bytes != c.site.size || d.digest != c.site.digest {
		return mismatch(fmt.Sprintf("%d bytes with the digest of the file", c.site.size), "%d bytes, digest %s", d.bytes, d.digest)
	}
	after, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	e.add(m.name, fmt.Sprintf("has %s from %s in %.2f s: %.0f MB/s", sizeText(d.bytes), c.site.url(filePage), d.duration.Seconds(), d.megabytes()),
		"bytes", d.bytes, "seconds", seconds(d.duration))
	e.add(m.name, fmt.Sprintf("SHA-256 %s..., as node-b's file has", d.digest[:16]), "digest", d.digest, "file", c.site.digest)
	was, is := before.member(m.name), after.member(m.name)
	packets, bytes, back := is.ToPackets-was.ToPackets, is.ToBytes-was.ToBytes, is.FromPackets-was.FromPackets
	if bytes < uint64(d.bytes) || packets == 0 || back == 0 {
		return mismatch("all of it to have passed the hub", "the hub counted %d bytes in %d packets to %s, and %d back", bytes, packets, m.name, back)
	}
	e.add(fromStatus, fmt.Sprintf("the hub relayed %s, %s, from node-b to %s, and %d back",
		count(packets, "packet"), sizeText(int64(bytes)), m.name, back), "packets", packets, "bytes", bytes)
	return nil
}

// reaches says at once, and by the hub's own words, when a node does not reach the web
// server of node-b.
func (c *cluster) reaches(ctx context.Context, m *member, before client.HubMember) error {
	waited, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	conn, err := m.stack.DialContext(waited, "tcp", c.site.address.String())
	if err == nil {
		return conn.Close()
	}
	d, asked := c.relay.console.status(ctx)
	if asked != nil {
		return err
	}
	return mismatch("a TCP connection from "+m.name+" to "+c.site.address.String(),
		"none within %s; the hub dropped %s of %s for %s", connectWait,
		count(drops(d.member(m.name), noGrant)-drops(before, noGrant), "packet"), m.name, noGrant)
}
