package hub_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/hub/tunnel"
)

const (
	// endWait is what is waited for what the hub does at an instant, or within a second
	// (contract §10.6, R20): this machine may be busy with other tests.
	endWait = 5 * time.Second
	// rounding is what the hub's deadlines, which are whole milliseconds of two clocks,
	// may differ from the instant.
	rounding = 3
)

// R65: a membership ends at its time, though Cloudly is away: the session is closed then
// and not before, nothing of its packets or to it passes that was sent later, its key
// opens no session, and others are not touched. Only a network with a later time admits
// it again.
func TestR65_AMembershipEndsAtItsTimeWithoutCloudly(t *testing.T) {
	c := start(t)
	for range 3 {
		c.admit()
	}
	c.grant([2]int{0, 1}, [2]int{1, 2}, [2]int{2, 0})
	c.push()
	var tallies [3]*tally
	var peers [3]*peer
	for n := range peers {
		tallies[n] = newTally()
		peers[n] = c.dial(n, func(d *dialling) { d.got = tallies[n].got })
	}
	for n, to := range []int{1, 2, 0} {
		c.sends(peers[n], 2*time.Millisecond, stamped(n, to))
	}
	pass := func(what string) {
		t.Helper()
		c.wantMore("packets that pass "+what, tallies[1], 0, 20)
		c.wantMore("packets that pass "+what, tallies[2], 1, 20)
		c.wantMore("packets that pass "+what, tallies[0], 2, 20)
	}
	pass("at first")

	from := c.NextSeq()
	ends := time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
	c.network.Nodes[0].ExpiresAt = ends.UnixMilli()
	c.push()
	c.Upstream.Outage()
	c.Eventually("an outage", func() error {
		if c.shown().Attached {
			return fmt.Errorf("the hub believes Cloudly there")
		}
		return nil
	})
	c.wantClosed("the member whose time is over", peers[0], tunnel.CloseNotAdmitted)
	if at := time.Now(); at.Before(ends.Add(-rounding*time.Millisecond)) || at.After(ends.Add(endWait)) {
		t.Errorf("the session ended %s after the membership", at.Sub(ends))
	}
	if told := c.WaitEvent("hub-member-expired", from); told.Text("node") != name(0) {
		t.Errorf("the event says %v", told.Fields)
	}
	if told := c.WaitEvent("hub-member-disconnected", from); told.Text("node") != name(0) || told.Text("reason") != "expired" {
		t.Errorf("the event says %v", told.Fields)
	}
	c.Eventually("packets to the member to be dropped", c.more("destination-expired"))
	c.wantMore("packets that pass between others", tallies[2], 1, 20)
	_, last := tallies[1].of(0)
	_, lastTo := tallies[0].of(2)
	if end := ends.UnixMilli() + rounding; last > end || lastTo > end {
		t.Errorf("packets passed that were sent %d and %d ms behind the end", last-end, lastTo-end)
	}
	refused := func(what string) {
		t.Helper()
		before := c.handshakes("expired")
		if p, err := c.dialIt(0); err == nil {
			err = p.waitSeated(c.Soon())
			t.Errorf("%s, the key opens a session: %v", what, err)
		} else {
			c.wantClosed("the key "+what, p, tunnel.CloseNotAdmitted)
		}
		c.Eventually("the handshake to be counted", func() error {
			if n := c.handshakes("expired"); n != before+1 {
				return fmt.Errorf("%v are, %v were", n, before)
			}
			return nil
		})
	}
	refused("without Cloudly")
	if m := c.shownOf(0); !m.Expired || m.Session != nil || m.Sessions != 1 || !peers[1].open() || !peers[2].open() {
		t.Errorf("shown %+v", m)
	}

	c.WaitCheck("hub", "hub-members", "failing", "members-expired")
	if err := c.Upstream.Resume(); err != nil {
		t.Fatal(err)
	}
	c.Signal(syscall.SIGHUP) // a wait for the next attempt gives way to it
	c.WaitReady()
	refused("with Cloudly back")
	c.network.Nodes[0].ExpiresAt = time.Now().Add(time.Hour).UnixMilli()
	c.push()
	peers[0] = c.dial(0, func(d *dialling) { d.got = tallies[0].got })
	c.sends(peers[0], 2*time.Millisecond, stamped(0, 1))
	pass("again")
}
