package demo

import (
	"context"
	"fmt"
	"time"
)

// Live traffic is modest: it is there to be looked at, not to load a machine.
const (
	roundEvery = time.Second
	roundBytes = 256 << 10 // what node-a downloads in each
	roundWait  = 10 * time.Second
	tellEvery  = 5 // rounds
)

// live lets traffic of every kind pass until the context ends. A round that fails is
// counted and shown, and the next one is tried: whoever lets a demonstration run may
// close the lid of the machine.
func (c *cluster) live(ctx context.Context) {
	l := Live{Kind: kindLive, Operator: c.relay.console.Base, Commands: c.commands()}
	if err := c.keepRenewed(); err != nil {
		l.Fault = err.Error()
	}
	c.cfg.To.Live(l)
	l.Commands = nil
	began := time.Now()
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	for c.cfg.To.Err() == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		n, err := c.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.Faults++
			l.Fault = err.Error()
		default:
			l.Rounds++
			l.Downloaded += n
		}
		if (l.Rounds+l.Faults)%tellEvery == 0 {
			l.Seconds = seconds(time.Since(began))
			c.count(ctx, &l)
			c.cfg.To.Live(l)
		}
	}
}

// commands are those that look at the relay from another terminal.
func (c *cluster) commands() []string {
	operator := " --operator=" + c.relay.address()
	return []string{
		c.cfg.Program + " status" + operator,
		fmt.Sprintf("%s explain%s --from=%s --to=%s", c.cfg.Program, operator, workload(nodeC), workload(nodeB)),
	}
}

// keepRenewed lets Cloudly renew the nodes' leases by itself from now on, on the grid
// of a real cluster.
func (c *cluster) keepRenewed() error {
	for _, m := range c.nodes {
		m.pallet.Trust(c.cloudly.Authority())
		if err := c.project(m); err != nil {
			return err
		}
	}
	return c.cloudly.KeepRenewed()
}

// round lets one of everything pass, and returns how much was downloaded.
func (c *cluster) round(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, roundWait)
	defer cancel()
	if err := c.report(ctx, c.nodes[nodeA]); err != nil {
		return 0, err
	}
	if err := c.push(ctx, c.nodes[nodeB]); err != nil {
		return 0, err
	}
	if _, _, err := c.browse(ctx); err != nil {
		return 0, err
	}
	d, err := fetch(ctx, c.nodes[nodeA].stack.DialContext, c.site.url(samplePage))
	return d.bytes, err
}

// count reads what has passed from the relay and the ingress.
func (c *cluster) count(ctx context.Context, l *Live) {
	d, err := c.relay.console.status(ctx)
	if err != nil {
		l.Fault = err.Error()
		return
	}
	l.ToCloudly, l.ToNodes, l.Packets = 0, 0, 0
	for _, n := range d.Duties.Forward.Nodes {
		l.ToCloudly += n.ToCloudly.Requests
		l.ToNodes += n.FromCloudly.Requests
	}
	for _, m := range d.Duties.Hub.Members {
		l.Packets += m.ToPackets
	}
	l.HTTPS = c.ingress.Counted(appHost).Requests
}
