package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"serve.zone/relay/simulate"
)

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
	all := c.cloudly.Registrations()
	if len(all) != 2 || all[1].Sequence != registered.Sequence {
		return mismatch(fmt.Sprintf("a second registration at Cloudly, with sequence %d", registered.Sequence), "%v", sequences(all))
	}
	e.add(fromEvents, fmt.Sprintf("%s %s, with sequence %d: by Cloudly's record its second registration, of which the first had %d. It tried again by itself",
		clockText(registered.Time), registered.Type, registered.Sequence, all[0].Sequence), "sequence", registered.Sequence, "registrations", len(all))
	ended, err := c.relay.console.awaitEvent(ctx, from, "renewals-release-ended")
	if err != nil {
		return err
	}
	// Counted as early as the relay says that it has stopped. A push is counted when it
	// begins, so that one which is under way still counts as one of before.
	pushed, err := c.relay.console.counted(ctx, pushedRenewals)
	if err != nil {
		return err
	}
	told, err := c.relay.console.since(ctx, c.begun, "renewal-acknowledged")
	if err != nil {
		return err
	}
	if err := acknowledgedBefore(ended, told, pushed); err != nil {
		return err
	}
	e.add(fromEvents, fmt.Sprintf("%s %s: %s had been acknowledged without Cloudly, by every node at least one",
		clockText(ended.Time), ended.Type, count(ended.Count, "renewal")), "acknowledged", ended.Count)
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
	if c.nonces() != nonces {
		return mismatch("nodes that register as the processes they were", "another nonce")
	}
	e.add(fromStatus, d.names()+" are confirmed by the Cloudly that came back", "nodes", nodeNames)
	e.add(fromNodes, "have registered again by themselves, each over a new socket, without a restart")
	if err := c.spared(ctx, e, pushed); err != nil {
		return err
	}
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

// acknowledgedBefore holds what the relay says of a release that has ended to what it told
// while it lasted: each acknowledgement that it counts is an event before the end, and
// that of a push. How many slots a node acknowledged is not judged: on a busy machine
// the next one may open first, and the answer for the one before is not waited for then.
func acknowledgedBefore(ended happening, told []happening, pushed uint64) error {
	by, all := map[string]int{}, 0
	for _, h := range told {
		if h.Seq < ended.Seq {
			by[h.Node]++
			all++
		}
	}
	for _, name := range nodeNames {
		if by[name] == 0 {
			return mismatch("a renewal that "+name+" acknowledged before Cloudly was back", "none in /events")
		}
	}
	if ended.Count != all {
		return mismatch(fmt.Sprintf("%s acknowledged, as many as /events tells of", count(all, "renewal")), "%d", ended.Count)
	}
	if pushed < uint64(all) {
		return mismatch(fmt.Sprintf("at least %s pushed, since so many were acknowledged", count(all, "renewal")), "%s is %d", pushedRenewals, pushed)
	}
	return nil
}

// goesOn is how long behind the opening of a window it is looked whether a relay goes on
// releasing, which it does at once. A good relay never does, however busy the machine.
const goesOn = slotEvery / 2

// spared waits until a window has opened while the nodes were back, and shows that the
// relay, which still holds its renewal, has released none since it had pushed so many.
func (c *cluster) spared(ctx context.Context, e *evidence, pushed uint64) error {
	first := c.leases.next(time.Now())
	if first > slotCount {
		return mismatch("a renewal whose window opens when the nodes are back", "the last one opened at %s", clockText(c.leases.opens(slotCount)))
	}
	select {
	case <-time.After(time.Until(c.leases.opens(first).Add(goesOn))):
	case <-ctx.Done():
		return ctx.Err()
	}
	opened := min(c.leases.next(time.Now())-1, slotCount) - first + 1
	now, err := c.relay.console.counted(ctx, pushedRenewals)
	if err != nil {
		return err
	}
	if now != pushed {
		return mismatch(fmt.Sprintf("%s to stay at %d behind the return", pushedRenewals, pushed), "%d", now)
	}
	for _, m := range c.nodes {
		for _, j := range m.pallet.Judgements() {
			if j.Renewal.Sequence >= int64(first) {
				return mismatch(fmt.Sprintf("no renewal from %d on given to %s", first, m.name), "renewal %d, at %s", j.Renewal.Sequence, clockText(j.At))
			}
		}
	}
	d, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	held, err := c.kept(d, slotCount)
	if err != nil {
		return err
	}
	e.add(fromMetrics, fmt.Sprintf("%s was %d when the release ended, and is: the relay has pushed none since", pushedRenewals, now), "pushed", now)
	e.add(fromNodes, fmt.Sprintf("were given none of a window that opened once they were back, though %s did", count(opened, "window")), "windows", opened)
	e.add(fromStatus, fmt.Sprintf("%s are still held for %s: it is for Cloudly again to renew", count(held.Renewals, "renewal"), count(held.Runs, "node")),
		"renewals", held.Renewals, "runs", held.Runs)
	return nil
}

// sequences are those of registrations.
func sequences(all []simulate.AcceptedRegistration) []int64 {
	var list []int64
	for _, r := range all {
		list = append(list, r.Sequence)
	}
	return list
}

// nonces are the process starts of all nodes.
func (c *cluster) nonces() string {
	var all []string
	for _, m := range c.nodes {
		all = append(all, m.pallet.Nonce())
	}
	return strings.Join(all, " ")
}
