package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// outage takes Cloudly away and watches what the nodes are given meanwhile.
func (c *cluster) outage(ctx context.Context, e *evidence) error {
	from, err := c.relay.console.next(ctx)
	if err != nil {
		return err
	}
	watch := c.watchNames(ctx)
	defer watch.stop()
	c.cloudly.Outage()
	lost, err := c.relay.console.awaitEvent(ctx, from, "cloudly-session-lost")
	if err != nil {
		return err
	}
	begun, err := c.relay.console.awaitEvent(ctx, from, "renewals-release-begun")
	if err != nil {
		return err
	}
	c.begun = begun.Seq
	if begun.Count != len(c.nodes) {
		return mismatch("a release for every node", "one for %s", count(begun.Count, "node"))
	}
	e.add(fromEvents, fmt.Sprintf("%s %s, and %s for %s", clockText(lost.Time), lost.Type, begun.Type, count(begun.Count, "node")), "nodes", begun.Count)

	m := c.nodes[nodeA]
	err = c.report(ctx, m)
	name, refused := simulate.Named(err, contract.TransportRefusals())
	if !refused {
		return mismatch("a refusal by name of a report while Cloudly is away", "%s", answered(err))
	}
	m.reports-- // it will be reported again
	c.heard = len(c.cloudly.Frames().Received(reportMethod))
	e.add(m.name, fmt.Sprintf("reports and is refused at once: %q. Nothing is queued", lastRefusal(m.pallet.Frames(), reportMethod)), "refused", name)
	page, _, err := c.browse(ctx)
	if err != nil {
		return mismatch("packets that pass while Cloudly is away", "%v", err)
	}
	e.add(browserName, fmt.Sprintf("is still answered: GET https://%s/ = 200 %q", appHost, strings.TrimSpace(page)), "body", page)

	// Slots that had opened before were Cloudly's to serve.
	first := c.leases.next(lost.Time)
	for slot := first; slot < first+slotsShown; slot++ {
		if err := c.released(ctx, e, int64(slot)); err != nil {
			return err
		}
	}
	if err := watch.unbroken(); err != nil {
		return err
	}
	// A node has admitted a renewal a little before the relay has read that it did.
	last := int64(first + slotsShown - 1)
	d, err := c.relay.console.until(ctx, func(d document) error { return c.acknowledged(d, last) })
	if err != nil {
		return err
	}
	least, covered := d.Duties.Escrow.Nodes[0].Acknowledged.Sequence, d.Duties.Escrow.Nodes[0].ExpiresAt
	for _, n := range d.Duties.Escrow.Nodes {
		least = min(least, n.Acknowledged.Sequence)
		if n.ExpiresAt.Before(covered) {
			covered = n.ExpiresAt
		}
	}
	e.add(fromNodes, "had an open DNS window at every moment, looked at every "+lookEvery.String())
	e.add(fromStatus, fmt.Sprintf("every node has acknowledged renewal %d; what is held would last until %s",
		least, clockText(covered)), "acknowledged", least, "heldUntil", covered)
	return nil
}

// acknowledged says for which node the relay does not show that a renewal, or one behind
// it, was acknowledged, and until when what it holds would last.
func (c *cluster) acknowledged(d document, sequence int64) error {
	nodes := d.Duties.Escrow.Nodes
	if len(nodes) != len(c.nodes) {
		return mismatch("what is held for every node", "it is shown for %s", count(len(nodes), "node"))
	}
	for _, n := range nodes {
		if n.Acknowledged == nil || n.Acknowledged.Sequence < sequence {
			return mismatch(fmt.Sprintf("an acknowledged renewal %d for %s", sequence, n.ID), "%+v", n.Acknowledged)
		}
		if n.ExpiresAt.Before(time.UnixMilli(c.leases.window(slotCount).ExpiresAt)) {
			return mismatch("what is held for "+n.ID+" to last until the end of its run", "it lasts until %s", clockText(n.ExpiresAt))
		}
	}
	return nil
}

// released waits until every node has admitted the renewal of a slot, and shows when.
func (c *cluster) released(ctx context.Context, e *evidence, slot int64) error {
	opens := c.leases.opens(int(slot))
	var worst time.Duration
	for _, m := range c.nodes {
		var j simulate.Judgement
		err := eventually(ctx, settleWait, func() error {
			for _, j = range m.pallet.Judgements() {
				if j.Renewal.Projection == m.projection.Reference && j.Renewal.Sequence == slot && j.Admission == simulate.Admitted {
					return nil
				}
			}
			return mismatch(fmt.Sprintf("renewal %d admitted by %s", slot, m.name), "%s", judged(m.pallet.Judgements()))
		})
		if err != nil {
			return err
		}
		after := j.At.Sub(opens)
		if after < 0 || after >= slotWindow {
			return mismatch(fmt.Sprintf("renewal %d inside its window", slot), "%s after it opened", after)
		}
		worst = max(worst, after)
	}
	e.add(fromNodes, fmt.Sprintf("all have admitted renewal %d, whose window opened at %s, within %d ms",
		slot, clockText(opens), worst.Milliseconds()), "sequence", slot, "opens", opens, "lateSeconds", seconds(worst))
	return nil
}

// judged says what a node decided about renewals.
func judged(all []simulate.Judgement) string {
	if len(all) == 0 {
		return "no renewal has come"
	}
	last := all[len(all)-1]
	return fmt.Sprintf("%d renewals have come, the last with sequence %d: %s %v", len(all), last.Renewal.Sequence, last.Admission, last.Refusal)
}

// names watches whether the nodes' DNS windows are open all the time.
type names struct {
	cancel context.CancelFunc
	ended  chan struct{}
	gap    string // the node that was found without an open window; read it once ended is closed
}

func (c *cluster) watchNames(ctx context.Context) *names {
	ctx, cancel := context.WithCancel(ctx)
	w := &names{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			for _, m := range c.nodes {
				if !m.pallet.ServesDNS() && w.gap == "" {
					w.gap = m.name
				}
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

// stop ends the watch.
func (w *names) stop() {
	w.cancel()
	<-w.ended
}

// unbroken ends the watch and says whether a window was found closed.
func (w *names) unbroken() error {
	w.stop()
	if w.gap != "" {
		return mismatch("open DNS windows throughout", "%s was without one for a while", w.gap)
	}
	return nil
}
