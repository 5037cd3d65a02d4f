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
	d, err := c.relay.console.until(ctx, func(d document) error {
		for _, n := range d.Duties.Escrow.Nodes {
			if n.Acknowledged == nil || n.Acknowledged.Sequence < int64(first+slotsShown-1) {
				return mismatch(fmt.Sprintf("an acknowledged renewal %d for %s", first+slotsShown-1, n.ID), "%+v", n.Acknowledged)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var least int64
	var covered time.Time
	for _, n := range d.Duties.Escrow.Nodes {
		if least == 0 || n.Acknowledged.Sequence < least {
			least = n.Acknowledged.Sequence
		}
		if covered.IsZero() || n.ExpiresAt.Before(covered) {
			covered = n.ExpiresAt
		}
	}
	e.add(fromNodes, "had an open DNS window at every moment, looked at every "+lookEvery.String())
	e.add(fromStatus, fmt.Sprintf("every node has acknowledged renewal %d; what is held would last until %s",
		least, clockText(covered)), "acknowledged", least, "heldUntil", covered)
	return nil
}

// released waits until every node has admitted the renewal of a slot, and shows when.
func (c *cluster) released(ctx context.Context, e *evidence, slot int64) error {
	opens := time.UnixMilli(c.leases.window(int(slot)).NotBefore)
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

// back brings Cloudly back and waits until every node has registered again.
func (c *cluster) back(ctx context.Context, e *evidence) error {
	from, err := c.relay.console.next(ctx)
	if err != nil {
		return err
	}
	sockets := map[string]int{}
	for _, m := range c.nodes {
		sockets[m.name], _ = m.pallet.Registered()
	}
	nonces := c.nonces()
	c.cloudly.Return()
	registered, err := c.relay.console.awaitEvent(ctx, from, "cloudly-registered")
	if err != nil {
		return err
	}
	e.add(fromEvents, fmt.Sprintf("%s %s, with sequence %d: the relay tried again by itself", clockText(registered.Time), registered.Type, registered.Sequence), "sequence", registered.Sequence)
	ended, err := c.relay.console.awaitEvent(ctx, from, "renewals-release-ended")
	if err != nil {
		return err
	}
	e.add(fromEvents, fmt.Sprintf("%s %s: %s had been acknowledged without Cloudly", clockText(ended.Time), ended.Type, count(ended.Count, "renewal")), "acknowledged", ended.Count)
	for _, m := range c.nodes {
		if _, err := m.pallet.WaitRegistered(ctx, sockets[m.name]); err != nil {
			return fmt.Errorf("%s registers again: %w", m.name, err)
		}
	}
	d, err := c.relay.console.until(ctx, func(d document) error {
		for _, n := range d.Duties.Forward.Nodes {
			if !n.Confirmed {
				return mismatch("every session confirmed by the Cloudly that came back", "%s is not", n.ID)
			}
		}
		if got := d.names(); got != strings.Join(nodeNames, ", ") {
			return mismatch("all nodes carried", "%s", got)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.spared(e, registered.Time); err != nil {
		return err
	}
	if c.nonces() != nonces {
		return mismatch("nodes that register as the processes they were", "another nonce")
	}
	e.add(fromStatus, d.names()+" are confirmed by the Cloudly that came back", "nodes", nodeNames)
	e.add(fromNodes, "have registered again by themselves, each over a new socket, without a restart")
	if err := c.report(ctx, c.nodes[nodeA]); err != nil {
		return mismatch("a report that passes again", "%v", err)
	}
	if _, err := sameBytes(reportMethod, c.nodes[nodeA].pallet.Frames(), c.cloudly.Frames()); err != nil {
		return err
	}
	if n := len(c.cloudly.Frames().Received(reportMethod)) - c.heard; n != 1 {
		return mismatch("one report at Cloudly since it was away: the refused one was not queued", "%d", n)
	}
	e.add(cloudlyName, "has the report that node-a could not deliver before, once")
	return nil
}

// spared shows that no renewal was released since Cloudly is back, though windows have
// opened.
func (c *cluster) spared(e *evidence, since time.Time) error {
	opened := c.leases.next(time.Now()) - c.leases.next(since)
	for _, m := range c.nodes {
		for _, j := range m.pallet.Judgements() {
			if j.At.After(since.Add(slotEvery / 2)) { // what was on its way may still arrive
				return mismatch("no renewal released to "+m.name+" behind the return", "renewal %d, at %s", j.Renewal.Sequence, clockText(j.At))
			}
		}
	}
	e.add(fromNodes, fmt.Sprintf("were given no renewal since, though %s opened meanwhile", count(opened, "window")), "windows", opened)
	return nil
}

// nonces are the process starts of all nodes.
func (c *cluster) nonces() string {
	var all []string
	for _, m := range c.nodes {
		all = append(all, m.pallet.Nonce())
	}
	return strings.Join(all, " ")
}
