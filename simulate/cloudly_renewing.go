package simulate

import (
	"context"
	"time"
)

// deliverAgain is how long Cloudly waits before it delivers or hands over again
// what was refused or not answered.
const deliverAgain = 5 * time.Second

// lookAgain is how soon a step of the wall clock is noticed, about which no
// timer tells.
const lookAgain = 10 * time.Second

// renewing keeps the leases of nodes going. Its fields are guarded by
// Cloudly.mu; wake has room for one.
type renewing struct {
	wake  chan struct{}
	nodes map[string]*renewed
}

// renewed is how far the leases of one node are.
type renewed struct {
	projection   int64 // generation that the rest is about
	acknowledged int64 // slot, 0 for none
	held         hold  // what the relay was last given
	busy         bool  // a delivery or a handover is in flight
	notBefore    time.Time
}

// hold says which run the relay holds: handed over on one socket, for one
// session and projection, from one slot on.
type hold struct {
	socket       int
	epoch, first int64
}

// KeepRenewed makes this Cloudly deliver DNS lease renewals by itself from now
// on. In every slot it delivers the renewal to each connected node that has a
// projection, again until it is acknowledged, and after that, and after every
// registration of a node, it hands the relay a run of the slots that follow.
func (c *Cloudly) KeepRenewed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renewing != nil {
		return nil
	}
	c.renewing = &renewing{wake: make(chan struct{}, 1), nodes: map[string]*renewed{}}
	if !c.spawn(c.keepRenewed) {
		return ErrClosed
	}
	return nil
}

// renewSoon makes the loop look again. It does nothing before KeepRenewed.
func (c *Cloudly) renewSoon() {
	if c.renewing == nil {
		return
	}
	select {
	case c.renewing.wake <- struct{}{}:
	default:
	}
}

func (c *Cloudly) keepRenewed() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-c.renewing.wake:
		case <-c.done:
			return
		}
		timer.Reset(c.renewAll())
	}
}

// renewAll starts what is due for every node and returns when to look again.
func (c *Cloudly) renewAll() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.wall()
	slot := SlotOf(now)
	wait := min(SlotStart(slot+1).Sub(now), lookAgain)
	for id, n := range c.cluster.nodes {
		if n.removed || n.projection == nil || !c.connected(n) {
			continue
		}
		r := c.renewing.nodes[id]
		if r == nil || r.projection != n.projection.Reference.Generation {
			r = &renewed{projection: n.projection.Reference.Generation}
			c.renewing.nodes[id] = r
		}
		if due := r.notBefore.Sub(now); due > 0 {
			wait = min(wait, due)
			continue
		}
		if !r.busy {
			c.renewNode(n, r, slot)
		}
	}
	return max(wait, time.Millisecond)
}

// renewNode starts the one thing that is due for a node: the delivery of the
// slot first, then the handover of what follows it.
func (c *Cloudly) renewNode(n *node, r *renewed, slot int64) {
	own := SlotOf(time.UnixMilli(n.projection.DNS.IssuedAt))
	switch next := max(r.acknowledged, own) + 1; {
	case slot >= next:
		signed, err := c.renewal(n.id, slot)
		if err != nil {
			return
		}
		c.renewLater(r, func() bool {
			_, err := c.ApplyRenewal(context.Background(), signed)
			return err == nil
		}, func() { r.acknowledged = slot })
	default:
		wanted := hold{c.registered.number, n.current.epoch, next}
		if r.held == wanted {
			return
		}
		c.renewLater(r, func() bool {
			run, err := c.Run(n.id, next, GridRun)
			if err == nil {
				_, err = c.Hold(context.Background(), run)
			}
			return err == nil
		}, func() { r.held = wanted })
	}
}

// renewLater runs a call of its own and then, when it succeeded, takes that
// over. Calls end with their socket or with the carrier's deadline.
func (c *Cloudly) renewLater(r *renewed, attempt func() bool, done func()) {
	r.busy = true
	c.spawn(func() {
		succeeded := attempt()
		c.mu.Lock()
		defer c.mu.Unlock()
		r.busy = false
		if succeeded {
			done()
		} else {
			r.notBefore = c.wall().Add(deliverAgain)
		}
		c.renewSoon()
	})
}
