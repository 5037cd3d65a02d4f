package demo

import (
	"context"
	"fmt"
	"time"
)

// noGrant is the hub's name for packets that no grant lets pass.
const noGrant = "no-grant"

const (
	// tryingFor is how long node-c tries at least. Its stack repeats a SYN after a second
	// (RFC 6298 §2), so that the hub has to drop more than what came first.
	tryingFor = 1500 * time.Millisecond
	// leastDropped is how many packets that makes.
	leastDropped = 2
)

// denied lets node-c try the same, which the network does not allow.
func (c *cluster) denied(ctx context.Context, e *evidence) error {
	m := c.nodes[nodeC]
	before, err := c.relay.console.status(ctx)
	if err != nil {
		return err
	}
	requests := c.site.requests.Load()
	trying, giveUp := context.WithCancel(ctx)
	defer giveUp()
	ended := make(chan error, 1)
	began := time.Now()
	var lasted time.Duration // until the document came that showed it
	go func() {
		_, err := fetch(trying, m.stack.DialContext, c.site.url(filePage))
		giveUp() // when there is nothing to wait for any more
		ended <- err
	}()
	d, err := c.relay.console.until(trying, func(d document) error {
		if lasted = time.Since(began); lasted < tryingFor {
			return mismatch(m.name+" to try for "+tryingFor.String(), "%s of it", lasted)
		}
		_, err := refused(before, d, m.name)
		return err
	})
	giveUp()
	if got := <-ended; got == nil {
		return mismatch("no download by "+m.name, "it has downloaded the file")
	}
	if now := c.site.requests.Load(); now != requests {
		return mismatch("nothing at the web server", "%d requests", now-requests)
	}
	if err != nil {
		return err
	}
	dropped, err := refused(before, d, m.name)
	if err != nil {
		return err
	}
	e.add(fromStatus, fmt.Sprintf("in %s of trying the hub dropped %s of node-c for the reason %s",
		lasted.Round(time.Millisecond), count(dropped, "packet"), noGrant), "dropped", dropped, "reason", noGrant, "seconds", seconds(lasted))
	e.add(nodeNames[nodeB], "its web server has heard nothing of node-c", "requests", 0)
	return c.explained(ctx, e, m, false)
}

// refused returns how many packets of a node the hub has dropped since an earlier document
// for want of a grant. It has to be more than the first one.
func refused(before, after document, name string) (uint64, error) {
	dropped := drops(after.member(name), noGrant) - drops(before.member(name), noGrant)
	if dropped < leastDropped {
		return dropped, mismatch(fmt.Sprintf("at least %d packets of %s dropped for %s", leastDropped, name, noGrant), "%d", dropped)
	}
	return dropped, nil
}

// What the relay says that becomes of a packet (operator's page /explain).
const (
	actionRelay = "relay"
	actionDrop  = "drop"
)

// explained asks the relay what becomes of packets from a node to the web server. It has
// to say so of the network that Cloudly pushed last.
func (c *cluster) explained(ctx context.Context, e *evidence, m *member, admitted bool) error {
	pushed, err := c.pushed()
	if err != nil {
		return err
	}
	x, err := c.relay.console.Explain(ctx, m.address, c.site.address.Addr())
	if err != nil {
		return err
	}
	action, reason := actionRelay, ""
	if !admitted {
		action, reason = actionDrop, noGrant
	}
	if x.Admitted != admitted || x.Action != action || x.Reason != reason || x.Revision != pushed.Revision || x.Sentence == "" {
		return mismatch(fmt.Sprintf("packets of %s admitted: %t, by revision %d", m.name, admitted, pushed.Revision),
			"%s %s by revision %d: %s", x.Action, x.Reason, x.Revision, x.Sentence)
	}
	e.add(fromExplain, x.Sentence, "action", x.Action, "reason", x.Reason, "revision", x.Revision)
	return nil
}
