package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/operator/client"
)

// grants are the pairs of nodes between which packets may pass, in the order that a
// network wants them in.
func grants(pairs ...[2]int) []contract.VPNGrant {
	list := []contract.VPNGrant{}
	for _, p := range pairs {
		list = append(list, contract.VPNGrant{SourceDomain: nodeNames[p[0]], DestinationDomain: nodeNames[p[1]]})
	}
	return list
}

// apply pushes the next revision of the network, and waits until it is effective: no
// packet leaves the hub that only the revision before allowed.
func (c *cluster) apply(ctx context.Context, list []contract.VPNGrant) error {
	next := c.network
	next.Revision++
	next.Grants = list
	answer, err := c.cloudly.ApplyNetwork(ctx, next)
	if err != nil {
		return fmt.Errorf("cloudly pushes revision %d of the network: %w", next.Revision, err)
	}
	c.network = next
	if answer.State == contract.VPNNetworkIdle {
		return nil
	}
	_, err = c.relay.console.until(ctx, func(d document) error {
		if n := d.Duties.Hub.Network; n == nil || n.Revision != next.Revision || n.State != string(contract.VPNNetworkIdle) {
			return mismatch(fmt.Sprintf("revision %d applied", next.Revision), "the hub shows %+v", n)
		}
		return nil
	})
	return err
}

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
	if err := c.apply(ctx, between); err != nil {
		return err
	}
	for _, m := range c.nodes {
		if err := c.connect(ctx, m); err != nil {
			return err
		}
	}
	d, err := c.relay.console.until(ctx, func(d document) error {
		for _, m := range c.nodes {
			if s := m.tunnel.Status(); s.State != node.StateUp || d.member(m.name).Session == nil {
				return mismatch("the tunnel of "+m.name+" up at both ends", "%s at the node, its last end %+v", s.State, s.Last)
			}
		}
		return nil
	})
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

// inForce returns the network that the relay shows, and says what the one allows that
// Cloudly pushed.
func (c *cluster) inForce(e *evidence, d document) (*client.HubNetwork, error) {
	n := d.Duties.Hub.Network
	if n == nil {
		return nil, mismatch("a network in force", "none")
	}
	allowed, err := c.allowed()
	if err != nil {
		return nil, err
	}
	e.add(cloudlyName, "pushed a network that allows "+allowed, "grants", allowed)
	return n, nil
}

// allowed lists the grants of the network that Cloudly pushed last, by its record.
func (c *cluster) allowed() (string, error) {
	sent := c.cloudly.Frames().Sent(contract.MethodApplyVPNNetwork)
	if len(sent) == 0 {
		return "", mismatch("a network that was pushed", "none")
	}
	request, err := contract.ReadApplyVPNNetworkRequest(sent[len(sent)-1].Body)
	if err != nil {
		return "", err
	}
	var pairs []string
	for _, g := range request.Network.Grants {
		pairs = append(pairs, g.SourceDomain+" to "+g.DestinationDomain)
	}
	return strings.Join(pairs, ", "), nil
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
	packets, bytes := is.ToPackets-was.ToPackets, is.ToBytes-was.ToBytes
	if bytes < uint64(d.bytes) {
		return mismatch("all of it to have passed the hub", "the hub counted %d bytes to %s", bytes, m.name)
	}
	e.add(fromStatus, fmt.Sprintf("the hub relayed %s, %s, from node-b to %s, and %d back",
		count(packets, "packet"), sizeText(int64(bytes)), m.name, is.FromPackets-was.FromPackets), "packets", packets, "bytes", bytes)
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

// noGrant is the hub's name for packets that no grant lets pass.
const noGrant = "no-grant"

// denied lets node-c try the same, which the network does not allow.
func (c *cluster) denied(ctx context.Context, e *evidence) error {
	m := c.nodes[nodeC]
	requests := c.site.requests.Load()
	trying, giveUp := context.WithCancel(ctx)
	defer giveUp()
	ended := make(chan error, 1)
	go func() {
		_, err := fetch(trying, m.stack.DialContext, c.site.url(filePage))
		giveUp() // when there is nothing to wait for any more
		ended <- err
	}()
	d, err := c.relay.console.until(trying, func(d document) error {
		if drops(d.member(m.name), noGrant) == 0 {
			return mismatch("packets of "+m.name+" dropped for "+noGrant, "none")
		}
		return nil
	})
	giveUp()
	if got := <-ended; got == nil {
		return mismatch("no download by "+m.name, "it has downloaded the file")
	}
	if err != nil {
		return err
	}
	if now := c.site.requests.Load(); now != requests {
		return mismatch("nothing at the web server", "%d requests", now-requests)
	}
	dropped := drops(d.member(m.name), noGrant)
	e.add(fromStatus, fmt.Sprintf("the hub dropped %s of node-c for the reason %s", count(dropped, "packet"), noGrant), "dropped", dropped, "reason", noGrant)
	e.add(nodeNames[nodeB], "its web server has heard nothing of node-c", "requests", 0)
	return c.explained(ctx, e, m, false)
}

// explained asks the relay what becomes of packets from a node to the web server.
func (c *cluster) explained(ctx context.Context, e *evidence, m *member, admitted bool) error {
	x, err := c.relay.console.Explain(ctx, m.address, c.site.address.Addr())
	if err != nil {
		return err
	}
	if x.Admitted != admitted {
		return mismatch(fmt.Sprintf("packets of %s admitted: %t", m.name, admitted), "%s", x.Sentence)
	}
	e.add(fromExplain, x.Sentence, "action", x.Action, "reason", x.Reason, "revision", x.Revision)
	return nil
}
