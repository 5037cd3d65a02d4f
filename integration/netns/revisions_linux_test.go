package netns_test

import (
	"testing"
	"time"

	"serve.zone/relay/contract"
)

// revise changes everything about the network, and gives it to the hub, but what the flow
// between its first two members goes by: expiries, a member that comes and goes, and what
// its domain may send and be sent.
func (c *cluster) revise(third contract.VPNNode) contract.ApplyVPNNetworkAnswer {
	c.t.Helper()
	n := &c.network
	for i := range n.Nodes {
		n.Nodes[i].ExpiresAt++
	}
	a, b := c.members[0].name, c.members[1].name
	if with := n.Revision%2 == 0; with {
		n.Nodes = append(n.Nodes[:2:2], third)
		n.Grants = grants([2]string{a, b}, [2]string{a, third.NodeID}, [2]string{b, a}, [2]string{third.NodeID, b})
	} else {
		n.Nodes = n.Nodes[:2:2]
		n.Grants = grants([2]string{a, b}, [2]string{b, a})
	}
	return c.push()
}

// grants are pairs of domains, which are in order.
func grants(pairs ...[2]string) (all []contract.VPNGrant) {
	for _, p := range pairs {
		all = append(all, contract.VPNGrant{SourceDomain: p[0], DestinationDomain: p[1]})
	}
	return all
}

// R66: while Cloudly pushes 20 revisions a second, nothing of a granted flow is dropped, in
// either direction, over UDP at a rate that loses nothing by itself, and over TCP nothing
// for a reason of policy. Nobody has to connect again.
func TestR66_RevisionsUnderFlows(t *testing.T) {
	if !apart(t) {
		return
	}
	c, a, b := pair(t, direct(ethernet), direct(ethernet))
	key, _ := newKey(t)
	third := nodeOf(2, key)
	a.serve()
	b.serve()

	const count = 3 * datagramRate
	udp := []*transfer{a.iperf(b, datagrams(count)...), b.iperf(a, datagrams(count)...)}
	revisions := c.reviseDuring(third, udp)
	for _, x := range udp {
		x.allArrived(count)
	}
	c.nothingDropped()
	tcp := []*transfer{a.iperf(b, stream(2)...), b.iperf(a, stream(2)...)}
	revisions += c.reviseDuring(third, tcp)
	for _, x := range tcp {
		x.carried()
	}
	for _, m := range c.members {
		shown, err := m.shown()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range shown.Dropped {
			if d.Reason != "queue-full" { // how TCP finds its rate
				t.Errorf("%d packets of %s were dropped: %s", d.Packets, m.name, d.Reason)
			}
		}
	}
	if revisions < 20 {
		t.Errorf("%d revisions", revisions)
	}
	c.sameSession()
	a.droppedNothing(congested...)
	b.droppedNothing(congested...)
}

// reviseDuring pushes 20 revisions a second until some transfers have ended, and returns how
// many there were.
func (c *cluster) reviseDuring(third contract.VPNNode, transfers []*transfer) (revisions int) {
	c.t.Helper()
	tick := time.NewTicker(time.Second / 20)
	defer tick.Stop()
	limit := time.After(testLimit)
	began, applying := time.Now(), 0
	for _, x := range transfers {
		for running := true; running; {
			select {
			case <-x.ended:
				running = false
			case <-limit:
				c.t.Fatalf("the flows do not end; the first says %s", transfers[0].output())
			case <-tick.C:
				if c.revise(third).State != contract.VPNNetworkIdle {
					applying++
				}
				revisions++
			}
		}
	}
	c.t.Logf("%d revisions in %v, %d of which were answered before they were in force everywhere", revisions, time.Since(began), applying)
	return revisions
}
