package hub_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"serve.zone/relay/contract"
)

// R59: a network is taken over when it is a newer one of the same authority and control
// prefix, and repeated when it is the one held, however it is spelled. Any other is refused
// by name, pushed or pulled, and changes neither what is held nor who is connected.
func TestR59_WhichNetworkIsAdmitted(t *testing.T) {
	c := start(t)
	c.admit()
	c.admit()
	c.grant([2]int{0, 1})
	c.network.Revision = 4
	c.push()
	tally := newTally()
	a, b := c.dial(0), c.dial(1, func(d *dialling) { d.got = tally.got })
	c.sends(a, 2*time.Millisecond, stamped(0, 1))
	c.wantMore("packets that pass", tally, 0, 10)

	held := c.network
	change := func(f func(x *contract.VPNNetwork)) contract.VPNNetwork {
		x := held
		x.Nodes = slices.Clone(x.Nodes)
		f(&x)
		return x
	}
	other := change(func(x *contract.VPNNetwork) { x.Nodes[1].ExpiresAt++ })
	lower := change(func(x *contract.VPNNetwork) { x.Revision = 4 })
	authority := change(func(x *contract.VPNNetwork) { x.AuthorityID, x.Revision = "authority-2", 9 })
	moved := change(func(x *contract.VPNNetwork) { x.ControlPrefix, x.Revision = "10.90.0.0/25", 9 })
	both := change(func(x *contract.VPNNetwork) {
		x.AuthorityID, x.ControlPrefix, x.Revision = "authority-2", "10.90.0.0/25", 4
	})
	// Of other members in another order, with white space and escapes.
	spelled := fmt.Sprintf("{\n\t\"network\" : {\"grants\":%s , \"revision\":5,\"controlPrefix\":\"10.90.0.0\\/24\",\"nodes\":%s,\"authorityId\":\"\\u0061uthority-1\"} }",
		list(held.Grants), list(held.Nodes))
	applied := c.shown().Network.AppliedAt

	for _, x := range []struct {
		what, body    string
		name          contract.RefusalName // "" for a replay
		reason, count string
	}{
		{"the one held", body(held), "", "", "replayed"},
		{"the one held, spelled otherwise", spelled, "", "", "replayed"},
		{"its revision with other content", body(other), revisionStale, "network.revision is that of the network held, which has other content", "stale"},
		{"a lower revision", body(lower), revisionStale, "network.revision is lower than that of the network held", "stale"},
		{"another authority", body(authority), foreign, "network.authorityId is not that of the network held", "foreign"},
		{"another control prefix", body(moved), foreign, "network.controlPrefix is not that of the network held", "foreign"},
		{"another of everything", body(both), foreign, "network.authorityId is not that of the network held", "foreign"},
	} {
		before := c.counted("relay_hub_received_networks_total", "origin", "pushed", "outcome", x.count)
		answer, err := c.call(x.body)
		if x.name == "" {
			if want := `{"appliedRevision":5,"state":"idle"}`; err != nil || answer != want {
				t.Errorf("%s: answered %s, %v, want %s", x.what, answer, err, want)
			}
		} else if reason := c.refusedAs(x.what, err, x.name); reason != x.reason {
			t.Errorf("%s: refused since %q", x.what, reason)
		}
		if now := c.counted("relay_hub_received_networks_total", "origin", "pushed", "outcome", x.count); now != before+1 {
			t.Errorf("%s: %v are counted, %v before", x.what, now, before)
		}
		c.pulls(x.body, x.count)
		if s := c.shown(); s.Network == nil || s.Network.Revision != 5 || s.Network.AppliedRevision != 5 || s.Network.AuthorityID != held.AuthorityID ||
			s.Network.ControlPrefix != held.ControlPrefix || !s.Network.AppliedAt.Equal(applied) || s.Members[1].ExpiresAt.UnixMilli() != held.Nodes[1].ExpiresAt {
			t.Errorf("%s: shown %+v", x.what, s.Network)
		}
	}
	c.wantMore("packets that pass still", tally, 0, 10)

	c.applied("a revision far above", change(func(x *contract.VPNNetwork) { x.Revision = 1000 }), 1000)
	c.wantMore("packets that pass still", tally, 0, 10)
	if s := c.shown(); s.Members[0].Sessions != 1 || s.Members[1].Sessions != 1 || !a.open() || !b.open() {
		t.Errorf("shown %+v", s.Members)
	}
}

// list spells a list.
func list[T interface{ AppendJSON([]byte) []byte }](all []T) string {
	text := "["
	for i, x := range all {
		if i > 0 {
			text += " ,"
		}
		text += string(x.AppendJSON(nil))
	}
	return text + "]"
}

// R60: a network that is not effective everywhere yet is answered with applying and the
// revision that is, and with idle once it is: here when the member that takes nothing has
// been given up. What it forbids is forbidden everywhere else at once.
func TestR60_ApplyingUntilItIsEffective(t *testing.T) {
	c := start(t)
	for range 3 {
		c.admit()
	}
	c.grant([2]int{0, 1}, [2]int{0, 2})
	c.push()
	tap, tally := newTap(), newTally()
	a, stuck := c.dial(0), c.dial(1, func(d *dialling) { d.tap = tap })
	c.dial(2, func(d *dialling) { d.got = tally.got })
	tap.deafen()
	c.sends(a, time.Millisecond, stamped(0, 2))
	// Of which QUIC needs a packet each: fewer leave with its probes than it holds.
	large := func(n uint32) []byte {
		return inner{from: workload(0), to: workload(1), number: n, length: 1100}.bytes()
	}
	toStuck := c.sends(a, 0, large)
	c.Eventually("more than waits for the member that takes nothing", c.more("queue-full"))
	toStuck.stop()

	c.grant([2]int{0, 2})
	c.network.Revision = 2
	pushed := func(want string) error {
		answer, err := c.call(body(c.network))
		if err != nil || answer != want {
			return fmt.Errorf("answered %s, %v, want %s", answer, err, want)
		}
		return nil
	}
	from := c.NextSeq()
	if err := pushed(`{"appliedRevision":1,"state":"applying"}`); err != nil {
		t.Error(err)
	}
	if n := c.shown().Network; n.Revision != 2 || n.AppliedRevision != 1 || n.State != "applying" {
		t.Errorf("shown %+v", n)
	}
	c.WaitCheck("hub", "hub-network", "pending", "applying")
	if err := pushed(`{"appliedRevision":1,"state":"applying"}`); err != nil {
		t.Errorf("again: %v", err)
	}
	dropped := c.more("no-grant")
	if err := a.send(large(0)); err != nil {
		t.Fatal(err)
	}
	c.Eventually("a packet to be dropped that is forbidden now", dropped)
	c.wantMore("packets that pass to others", tally, 0, 10)

	if told := c.WaitEvent("hub-member-disconnected", from); told.Text("node") != name(1) || told.Text("reason") != "stuck" {
		t.Errorf("the event says %v", told.Fields)
	}
	c.Eventually("the network to be effective", func() error {
		return pushed(`{"appliedRevision":2,"state":"idle"}`)
	})
	c.WaitCheck("hub", "hub-network", "ok")
	if s := c.shown(); s.Members[1].Session != nil || s.Members[0].Sessions != 1 || !a.open() {
		t.Errorf("shown %+v", s.Members)
	}
	if _, err := stuck.closed(); err == nil {
		t.Error("the member that takes nothing has heard that it was given up")
	}
}
