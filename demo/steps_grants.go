package demo

import (
	"context"
	"fmt"
	"time"

	"serve.zone/relay/hub/node"
)

// granted adds grants, and lets node-c download over the tunnel that it has.
func (c *cluster) granted(ctx context.Context, e *evidence) error {
	m := c.nodes[nodeC]
	if _, err := c.apply(ctx, grants([2]int{nodeA, nodeB}, [2]int{nodeB, nodeA}, [2]int{nodeB, nodeC}, [2]int{nodeC, nodeB})); err != nil {
		return err
	}
	d, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	n, err := c.inForce(e, d)
	if err != nil {
		return err
	}
	e.add(fromStatus, fmt.Sprintf("revision %d of it is in force: %s", n.Revision, count(n.Grants, "grant")), "revision", n.Revision, "grants", n.Grants)
	if err := c.downloaded(ctx, e, m); err != nil {
		return err
	}
	if err := c.explained(ctx, e, m, true); err != nil {
		return err
	}
	return c.sameTunnel(ctx, e, m)
}

// sameTunnel shows that a node still has the tunnel that it began with.
func (c *cluster) sameTunnel(ctx context.Context, e *evidence, m *member) error {
	d, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	s, x := m.tunnel.Status(), d.member(m.name)
	if s.Tunnels != 1 || x.Sessions != 1 || s.State != node.StateUp {
		return mismatch("the first tunnel of "+m.name+" still up", "%s, %d tunnels at the node, %d sessions at the hub", s.State, s.Tunnels, x.Sessions)
	}
	e.add(m.name, fmt.Sprintf("is still on its first tunnel, up for %.1f s", time.Since(s.Since).Seconds()), "tunnels", s.Tunnels)
	return nil
}

// underWay is how much of a transfer has to have come for it to count as under way.
const underWay = 4 << 20

// mostLate is how much may still arrive behind the answer that a grant is gone: what had
// left the hub before and waits in the node, whose tunnel holds 256 KiB and whose QUIC
// holds 128 datagrams.
const mostLate = 1 << 20

// withdrawn takes node-c's grants away while it downloads.
func (c *cluster) withdrawn(ctx context.Context, e *evidence) error {
	m, from := c.nodes[nodeC], c.nodes[nodeB]
	before, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	t := c.begin(ctx, m)
	defer t.stop()
	err = eventually(ctx, settleWait, func() error {
		if n := t.bytes.Load(); n < underWay {
			return mismatch("a transfer that is under way", "%d bytes", n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	revision, err := c.apply(ctx, grants([2]int{nodeA, nodeB}, [2]int{nodeB, nodeA}))
	if err != nil {
		return err
	}
	at := t.bytes.Load()
	e.add(m.name, fmt.Sprintf("had downloaded %s when the hub answered that revision %d is in force", sizeText(at), revision),
		"bytes", at, "revision", revision)
	last, err := t.silent(ctx)
	if err != nil {
		return err
	}
	if last-at > mostLate {
		return mismatch(fmt.Sprintf("at most %s behind that answer", sizeText(mostLate)), "%s", sizeText(last-at))
	}
	e.add(m.name, fmt.Sprintf("got %s behind that answer, and then nothing for %s", sizeText(last-at), silence),
		"lateBytes", last-at, "silentSeconds", silence.Seconds())
	d, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	dropped := drops(d.member(from.name), noGrant) - drops(before.member(from.name), noGrant)
	if dropped == 0 {
		return mismatch("packets from node-b dropped for "+noGrant, "none")
	}
	e.add(fromStatus, fmt.Sprintf("the hub dropped %s from node-b to node-c for the reason %s", count(dropped, "packet"), noGrant), "dropped", dropped)
	return c.sameTunnel(ctx, e, m)
}
