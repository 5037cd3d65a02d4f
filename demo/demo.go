package demo

import (
	"context"
	"fmt"
	"time"

	"serve.zone/relay/appliance"
)

// Config is what a demonstration is told. Fields without a remark must be set.
type Config struct {
	// Relay is the relay that is shown, whole but for its settings: the build, the
	// seams to the network and the clock.
	Relay appliance.Config
	// Dir is an empty folder of the demonstration's own. Whoever made it removes it.
	Dir string
	// Program is what to type in order to run this program again, as in a shell.
	Program string
	// To is told what happens.
	To Printer
	// Once ends the demonstration behind the last step, in place of live traffic until
	// the context ends.
	Once bool
	// Size is that of the downloaded file, in bytes.
	Size int64
	// Break has a simulated peer misbehave, so that a step must fail; zero for none.
	Break Break
}

// Size of the downloaded file, in bytes.
const (
	DefaultSize = 64 << 20
	MaximumSize = 1 << 30 // it lies in a temporary folder
)

// Break names a misbehaviour.
type Break string

// The misbehaviours. Each is one of Cloudly's, which the relay must not hide.
const (
	// BreakGrant leaves the grant from node-a to node-b out of the first network: the
	// step download fails.
	BreakGrant Break = "grant"
	// BreakRenewal puts a wrong digest into a run of renewals: the step hold fails.
	BreakRenewal Break = "renewal"
)

// Breaks are the misbehaviours.
func Breaks() []Break { return []Break{BreakGrant, BreakRenewal} }

// steps are what is shown, in order; the last one ends the relay.
func (c *cluster) steps() []step {
	transfer := time.Duration(c.cfg.Size/slowest) * time.Second
	return []step{
		{name: "start", title: "The relay starts and registers with Cloudly", run: c.start},
		{name: "register", title: "Three nodes register through the relay; a fourth is refused", run: c.register},
		{name: "exchange", title: "A report goes up and a push comes down, byte for byte", run: c.exchange},
		{name: "network", title: "Cloudly pushes a VPN network, and the nodes' tunnels come up", run: c.join},
		{name: "download", title: fmt.Sprintf("node-a downloads %s from a web server on node-b, through the hub", sizeText(c.cfg.Size)),
			run: c.download, more: transfer},
		{name: "denied", title: "node-c tries the same and does not get through", run: c.denied},
		{name: "granted", title: "A grant is added, and node-c downloads over the tunnel that it has", run: c.granted, more: transfer},
		{name: "withdrawn", title: "The grant is withdrawn in the middle of a transfer, and the transfer stops", run: c.withdrawn},
		{name: "ingress", title: "An HTTPS request passes the ingress, by the route table that Cloudly pushed", run: c.publish},
		{name: "hold", title: "Cloudly hands over renewals, signed in advance for when it is away", run: c.hold},
		{name: "outage", title: "Cloudly goes away, and the relay releases the renewals slot by slot", run: c.outage},
		{name: "return", title: "Cloudly comes back, and the nodes register again", run: c.back},
		{name: "stop", title: "The relay is told to stop, as by SIGTERM, drains and ends", run: c.stop},
	}
}

// slowest is the rate, in bytes a second, below which a download counts as failed.
const slowest = 1 << 20

// Run runs the demonstration and reports whether every step held. When it returns it
// has ended everything that it started. The context stands for whoever watches: when it
// ends, the step that runs is interrupted, or the live traffic ends and the relay is
// stopped. The error is the printer's, or that of a machine on which nothing could be
// made; whatever else was found has been printed.
func Run(ctx context.Context, cfg Config) (held bool, err error) {
	if cfg.Size < 1 || cfg.Size > MaximumSize {
		return false, fmt.Errorf("the file is to have 1 to %d bytes", MaximumSize)
	}
	c, err := newCluster(cfg)
	defer c.close()
	if err != nil {
		return false, err
	}
	return c.show(ctx)
}

// show is Run, with the cluster that is shown.
func (c *cluster) show(ctx context.Context) (held bool, err error) {
	to, steps := c.cfg.To, c.steps()
	run := runner{to: to, steps: steps}
	to.Open(opening(c.cfg, steps))
	if !c.cfg.Once {
		run.perform(ctx, len(steps)-1)
		if run.held() {
			c.live(ctx)
			ctx = context.WithoutCancel(ctx) // what is left is the end that was asked for
		}
	}
	run.perform(ctx, len(steps))
	c.close()
	to.Close(run.summary())
	return run.held(), to.Err()
}
