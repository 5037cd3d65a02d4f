package hub_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/integration/impair"
)

// otherMachine is another address of loopback, which is another machine's to the hub.
var otherMachine = netip.MustParseAddr("127.0.0.5")

// place is where the hub must see a member whose client has one socket.
func (m *member) place() netip.AddrPort {
	for _, at := range m.way.Places() {
		return at
	}
	return netip.AddrPort{}
}

// movedTo waits until the hub shows node n where its NAT has put it, in the same session.
func (c *cluster) movedTo(n int, m *member, limit time.Duration, since time.Time) {
	c.t.Helper()
	c.Within(limit, "the hub sees "+name(n)+" at its new place", func() error {
		if err := c.sameSession(n, m, since); err != nil {
			return err
		}
		if at := c.shows(n).Session.Address; at != m.place() {
			return fmt.Errorf("it is shown at %v, and is at %v", at, m.place())
		}
		return nil
	})
}

// B190: a NAT that forgets a member in the middle of a stream, and a machine whose address
// changes, cost neither a byte nor the session, whichever way the stream goes.
func TestB190_ANATRebindsUnderAStream(t *testing.T) {
	c := start(t)
	a, b := over(c, impair.Path{Rate: 2 << 20}) // so that it leaves the machine time for others
	since := c.shows(0).Session.Since
	for i, way := range [][2]*member{{a, b}, {b, a}} {
		source := newEndless()
		done := make(chan error, 1)
		go func() { done <- c.stream(way[0], way[1], 1-i, source) }()
		goesOn := func() {
			t.Helper()
			before := c.shows(1 - i).ToPackets
			c.Eventually("the stream goes on", func() error {
				if now := c.shows(1 - i).ToPackets; now < before+100 {
					return fmt.Errorf("%d packets passed, %d before", now, before)
				}
				return nil
			})
		}
		for _, to := range []netip.Addr{{}, otherMachine, {}} {
			goesOn()
			if err := a.way.Rebind(to); err != nil {
				t.Fatal(err)
			}
			// What the member sends, acknowledgements at least, is on its way already.
			c.movedTo(0, a, 10*time.Second, since)
		}
		goesOn()
		source.end()
		if err := <-done; err != nil {
			t.Fatalf("%s to %s: %v", name(i), name(1-i), err)
		}
	}
	if err := c.sameSession(0, a, since); err != nil {
		t.Error(err)
	}
	// QUIC forgets the size of the path with each move.
	if n, _ := c.dropped("path-too-small"); n > 0 {
		t.Errorf("%v packets were dropped for their size", n)
	}
}

// quiet waits until a member has said nothing for a second: QUIC looks for the size of its
// path first.
func (c *cluster) quiet(m *member) {
	c.t.Helper()
	came, since := m.way.Counts(impair.ToUpstream).Came, time.Now()
	c.Eventually("a member is quiet", func() error {
		if now := m.way.Counts(impair.ToUpstream).Came; now != came {
			came, since = now, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("%d datagrams came", came)
		}
		return nil
	})
}

// B193: a path that is dark for longer than a connection lives: both ends give it up by
// themselves, by the names that the documentation gives, and the member is back as soon as
// the path is. Meanwhile another one, which says nothing, has a NAT that forgets it: it is
// found at its new place with its next keepalive, within ten seconds (docs/tunnel.md,
// section 2), so that the hub reaches it there. Nobody else notices either. They share
// their relay because both have to wait.
func TestB193_ABlackoutAndARebindingInSilence(t *testing.T) {
	c := start(t)
	a, b := over(c, mild)
	other := c.shows(1).Session.Since
	from := c.NextSeq()
	a.way.Blackout(true)

	c.quiet(b)
	if err := b.way.Rebind(otherMachine); err != nil {
		t.Fatal(err)
	}
	// The rest is for what a busy machine takes.
	c.movedTo(1, b, 10*time.Second+5*time.Second, other)

	// The hub 30 s from the last packet, the node as long from its next keepalive, which is
	// 10 s later; the rest is for what a busy machine takes.
	c.Within(60*time.Second, "both ends give it up", func() error {
		if shown := c.shows(0); shown.Session != nil {
			return fmt.Errorf("the hub shows %+v", shown)
		}
		return a.ended(node.Silent)
	})
	if e := c.WaitEvent("hub-member-disconnected", from); e.Text("node") != name(0) || e.Text("reason") != "silent" {
		t.Errorf("%+v", e)
	}
	if err := a.is(node.StateUp); err == nil {
		t.Error("it is up in the dark")
	}
	a.way.Blackout(false)
	c.Eventually("it is back", func() error {
		if shown := c.shows(0); shown.Session == nil || shown.Sessions != 2 {
			return fmt.Errorf("the hub shows %+v", shown)
		}
		return a.is(node.StateUp)
	})
	for i, way := range [][2]*member{{a, b}, {b, a}} {
		if err := c.transfer(way[0], way[1], 1-i, 64<<10); err != nil {
			t.Errorf("%s to %s: %v", name(i), name(1-i), err)
		}
	}
	if s := a.client.Status(); s.Tunnels != 2 {
		t.Errorf("%d tunnels, endings %v", s.Tunnels, s.Endings)
	}
	if err := c.sameSession(1, b, other); err != nil {
		t.Error(err)
	}
	if a.way.Counts(impair.ToUpstream).Dropped[impair.Blackout] == 0 {
		t.Error(errors.New("nothing was lost in the dark: a wrong test"))
	}
}
