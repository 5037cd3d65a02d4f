package demo

import (
	"context"
	"fmt"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/operator/client"
	"serve.zone/relay/simulate"
)

// hold hands the relay what it needs when Cloudly is away: for each node a run of
// renewals that Cloudly has signed in advance.
func (c *cluster) hold(ctx context.Context, e *evidence) error {
	c.leases = newLeases(time.Now().Truncate(time.Millisecond))
	for i, m := range c.nodes {
		m.projection = c.leases.projection(m.projection)
		m.pallet.Trust(c.leases.authority.Authority)
		m.pallet.AdmitProjection(m.projection)
		run, err := c.leases.run(m.projection)
		if err != nil {
			return err
		}
		if c.cfg.Break == BreakRenewal && i == nodeB {
			spoil(run)
		}
		if held, err := c.cloudly.Hold(ctx, run); err != nil || held != slotCount {
			return mismatch(fmt.Sprintf("a run of %d renewals held for %s", slotCount, m.name), "%d held; the relay says %q",
				held, lastRefusal(c.cloudly.Frames(), contract.MethodHoldDNSLeaseRenewals))
		}
	}
	d, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	each, every, window, err := c.grid()
	if err != nil {
		return err
	}
	s, err := c.kept(d, each)
	if err != nil {
		return err
	}
	e.add(cloudlyName, fmt.Sprintf("handed over %s for each node: a window of %s every %s (in a real cluster 15 minutes every 10)",
		count(each, "renewal"), window, every), "each", each, "everySeconds", every.Seconds(), "windowSeconds", window.Seconds())
	e.add(fromStatus, fmt.Sprintf("%s are held for %s", count(s.Renewals, "renewal"), count(s.Runs, "node")), "renewals", s.Renewals, "runs", s.Runs)
	return c.wrongRun(ctx, e, each)
}

// kept returns what the relay shows of what it holds: a run for every node, of as many
// renewals as Cloudly handed over, but for those whose window has ended since.
func (c *cluster) kept(d document, each int) (*client.EscrowSection, error) {
	s, nodes := d.Duties.Escrow, len(c.nodes)
	if ended := slotCount - c.leases.lasting(time.Now()); s.Runs != uint64(nodes) || s.Renewals > uint64(nodes*each) || s.Renewals < uint64(nodes*(each-ended)) {
		return nil, mismatch(fmt.Sprintf("%s for each of %d nodes held, but for %d whose window has ended", count(each, "renewal"), nodes, ended),
			"%d of %s", s.Renewals, count(s.Runs, "node"))
	}
	return s, nil
}

// grid reads the last run that Cloudly handed over from its record: how many renewals
// it has, how far apart their windows open, and how long they are.
func (c *cluster) grid() (n int, every, window time.Duration, err error) {
	sent := c.cloudly.Frames().Sent(contract.MethodHoldDNSLeaseRenewals)
	if len(sent) == 0 {
		return 0, 0, 0, mismatch("a run that was handed over", "none")
	}
	run, err := contract.ReadHoldDNSLeaseRenewalsRequest(sent[len(sent)-1].Body)
	if err != nil || len(run.Renewals) < 2 {
		return 0, 0, 0, mismatch("a run of renewals", "%d, %v", len(run.Renewals), err)
	}
	first, second := run.Renewals[0].Renewal.DNS, run.Renewals[1].Renewal.DNS
	milliseconds := func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
	return len(run.Renewals), milliseconds(second.NotBefore - first.NotBefore), milliseconds(first.ExpiresAt - first.NotBefore), nil
}

// wrongRun hands over a run in which one digest is wrong. It is refused whole, and what
// is held stays.
func (c *cluster) wrongRun(ctx context.Context, e *evidence, each int) error {
	run, err := c.leases.run(c.nodes[nodeA].projection)
	if err != nil {
		return err
	}
	spoil(run)
	_, err = c.cloudly.Hold(ctx, run)
	name, refused := simulate.Named(err, contract.HoldRefusals())
	if !refused {
		return mismatch("a refusal of a run with a wrong digest", "%s", answered(err))
	}
	d, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	s, err := c.kept(d, each)
	if err != nil {
		return err
	}
	e.add(cloudlyName, fmt.Sprintf("hands over one more run, with one wrong digest, and is refused: %q",
		lastRefusal(c.cloudly.Frames(), contract.MethodHoldDNSLeaseRenewals)), "refused", name)
	e.add(fromStatus, fmt.Sprintf("%s are still held for %s", count(s.Renewals, "renewal"), count(s.Runs, "node")))
	return nil
}
