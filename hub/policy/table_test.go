package policy

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/network/networktest"
)

// R66: over 20 revisions of grants and expiries every membership goes on, and what is
// granted passes under each revision.
func TestR66_MembershipsOverRevisions(t *testing.T) {
	table := compile(t, nil, granted())
	a, b := idOf(t, table, "node-000"), idOf(t, table, "node-001")
	p := packet("10.0.0.1", "10.1.0.1")
	for i := range int64(20) {
		x := granted()
		x.Revision += i + 1
		x.Nodes[0].ExpiresAt += i
		if i%2 == 0 {
			x = networktest.Grant(x, "d2.0", "d3.0", "d3.1", "d1.1")
		}
		table = compile(t, table, x)
		if table.Member(a) == nil || table.Member(b) == nil || table.Member(a).NodeID != "node-000" {
			t.Fatalf("revision %d: a membership ended", x.Revision)
		}
		if got := table.Member(a).Deadline.Wall; got != x.Nodes[0].ExpiresAt {
			t.Fatalf("revision %d: expires at %d, want %d", x.Revision, got, x.Nodes[0].ExpiresAt)
		}
		want(t, "granted", table, a, admitted, p, "relay to node-001")
		if table.Revision() != x.Revision || table.Epoch() != uint64(i)+2 {
			t.Errorf("revision %d, epoch %d", table.Revision(), table.Epoch())
		}
	}
}

// B092: after grants were taken and given again, it is the last network alone that
// counts.
func TestB092_ToggledGrantsEndAsTheyBegan(t *testing.T) {
	table := compile(t, nil, granted())
	a := idOf(t, table, "node-000")
	p := packet("10.0.0.1", "10.1.0.1")
	without := granted()
	without.Grants = []contract.VPNGrant{}
	for range 100 {
		table = compile(t, table, without)
		want(t, "off", table, a, admitted, p, "drop no-grant")
		table = compile(t, table, granted())
		want(t, "on", table, a, admitted, p, "relay to node-001")
	}
}

// B086: a second table of one network says the same of every packet.
func TestB086_ASecondTableOfOneNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		x := networktest.Random(r, networktest.RandomNodes, 1)
		first := compile(t, nil, x)
		second := compile(t, first, x)
		tr := newTraffic(r, x)
		for range 200 {
			p, from := tr.next()
			var id ID
			if m := first.node(from); m != nil {
				id = m.ID
			}
			now := tr.now()
			if one, two := said(first.Judge(p, id, now)), said(second.Judge(p, id, now)); one != two {
				t.Fatalf("%x: %s, then %s", p, one, two)
			}
		}
	})
}

// R64, B100: what was a member and is left out is dropped at both ends, and what it was
// before does not help it.
func TestR64_WithdrawalByOmission(t *testing.T) {
	table := compile(t, nil, granted())
	b, c := idOf(t, table, "node-001"), idOf(t, table, "node-002")
	x := granted()
	x.Nodes = slices.Delete(slices.Clone(x.Nodes), 1, 2)
	x.Grants = []contract.VPNGrant{{SourceDomain: "d0.0", DestinationDomain: "d2.0"}}
	next := compile(t, table, x)
	a := idOf(t, next, "node-000")
	if next.Member(b) != nil || next.MemberByKey(networktest.Key(1)) != nil {
		t.Error("it is a member still")
	}
	if next.Member(a) == nil || next.Member(c) == nil {
		t.Error("another membership ended")
	}
	want(t, "to it", next, a, admitted, packet("10.0.0.1", "10.1.0.1"), "drop destination-unknown")
	want(t, "from it", next, b, admitted, packet("10.1.0.1", "10.2.0.1"), "drop sender-unknown")
	want(t, "its ping", next, b, admitted, packet("192.168.0.3", "192.168.0.1", echo), "drop sender-unknown")
	want(t, "between others", next, a, admitted, packet("10.0.0.1", "10.2.0.1"), "relay to node-002")

	again := compile(t, next, granted())
	if again.Member(b) != nil {
		t.Error("the membership that had ended goes on")
	}
	if idOf(t, again, "node-001") == b {
		t.Error("a name of a membership was used again")
	}
	want(t, "from its old session", again, b, admitted, packet("10.1.0.1", "10.2.0.1"), "drop sender-unknown")
}

// TestCustodyDropEndsEveryMembership, also for the same network afterwards.
func TestCustodyDropEndsEveryMembership(t *testing.T) {
	table := compile(t, nil, granted())
	a := idOf(t, table, "node-000")
	empty := Empty(table)
	if empty.Epoch() != 2 || empty.Revision() != 0 || empty.Network() != nil || empty.Member(a) != nil ||
		empty.MemberByKey(networktest.Key(0)) != nil || empty.ControlPrefix().IsValid() || empty.HubAddress().IsValid() {
		t.Errorf("empty: %+v", empty)
	}
	for range empty.Members() {
		t.Error("it has a member")
	}
	if _, ok := empty.NextExpiry(admitted); ok {
		t.Error("something of it expires")
	}
	again := compile(t, empty, granted())
	if again.Member(a) != nil {
		t.Error("a membership outlived a custody drop")
	}
	want(t, "from its old session", again, a, admitted, packet("10.0.0.1", "10.1.0.1"), "drop sender-unknown")
}

// TestMembershipsOverRandomNetworks follows every membership that ever was through
// many tables.
func TestMembershipsOverRandomNetworks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		ever := map[ID]contract.VPNNode{}
		table := Empty(nil)
		for revision := range int64(10) {
			prev := table
			x := networktest.Random(r, networktest.RandomNodes, revision+1)
			if r.IntN(8) == 0 {
				table = Empty(prev)
			} else {
				table = compile(t, prev, x)
			}
			slots := map[int]bool{}
			for m := range table.Members() {
				n := nodeOf(table.Network(), m.NodeID)
				if slots[m.ID.Slot()] || m.ID.Slot() < 0 || m.ID.Slot() >= Slots {
					t.Fatalf("slot %d", m.ID.Slot())
				}
				slots[m.ID.Slot()] = true
				before, was := ever[m.ID]
				had := nodeOf(prev.Network(), m.NodeID)
				continues := had != nil && had.PublicKey == n.PublicKey && had.ControlAddress == n.ControlAddress
				if was != continues || was && (before.NodeID != n.NodeID || prev.node(n.NodeID).ID != m.ID) {
					t.Fatalf("%s: its membership is known: %v, it continues: %v", m.NodeID, was, continues)
				}
				if table.Member(m.ID) != m || table.MemberByKey(m.Key) != m || m.Key.String() != n.PublicKey ||
					m.ControlAddress.String() != n.ControlAddress || m.Deadline.Wall != n.ExpiresAt {
					t.Fatalf("%+v is not what the network says: %+v", m, n)
				}
			}
			for id, n := range ever {
				if m := table.Member(id); m != nil && m.NodeID != n.NodeID {
					t.Fatalf("the membership of %s is that of %s", n.NodeID, m.NodeID)
				}
			}
			for m := range table.Members() {
				ever[m.ID] = *nodeOf(table.Network(), m.NodeID)
			}
		}
	})
}

func nodeOf(x *contract.VPNNetwork, id string) *contract.VPNNode {
	if x == nil {
		return nil
	}
	for i := range x.Nodes {
		if x.Nodes[i].NodeID == id {
			return &x.Nodes[i]
		}
	}
	return nil
}

// R65: under a clock that was set back, deadlines of memberships that continue are
// renewed, and those of others begin.
func TestR65_RenewalUnderAClockThatWasSetBack(t *testing.T) {
	x := granted()
	table := compile(t, nil, x)
	a := idOf(t, table, "node-000")
	back := in(60_000)
	back.Wall -= 86_400_000
	x.Revision++
	table, err := Compile(table, x, back)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := table.Member(a).Deadline, (network.Deadline{Wall: networktest.Admitted + networktest.Lifetime, Mono: admitted.Mono + networktest.Lifetime}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	table, err = Compile(Empty(table), x, back)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := table.node("node-000").Deadline, network.NewDeadline(networktest.Admitted+networktest.Lifetime, back); got != want {
		t.Errorf("anew: %+v, want %+v", got, want)
	}
}

func TestNextExpiry(t *testing.T) {
	x := granted() // node-003 has expired when it is admitted
	x.Nodes[0].ExpiresAt = networktest.Admitted + 5000
	x.Nodes[1].ExpiresAt = networktest.Admitted + 3000
	table := compile(t, nil, x)
	ahead := in(0)
	ahead.Wall += 2500
	for name, tc := range map[string]struct {
		now  network.Instant
		want time.Duration
	}{
		"at once":              {in(0), 3 * time.Second},
		"later":                {in(2999), time.Millisecond},
		"the second":           {in(3000), 2 * time.Second},
		"the last":             {in(5000), time.Duration(networktest.Lifetime-5000) * time.Millisecond},
		"wall clock set ahead": {ahead, 500 * time.Millisecond},
	} {
		if got, ok := table.NextExpiry(tc.now); got != tc.want || !ok {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
	if got, ok := table.NextExpiry(in(networktest.Lifetime)); ok {
		t.Errorf("after the last: %v", got)
	}
}

func TestTableOfANetwork(t *testing.T) {
	x := networktest.Grid(contract.MaximumVPNNodes, 1)
	table := compile(t, nil, x)
	if table.HubAddress() != netip.MustParseAddr("192.168.0.1") || table.ControlPrefix() != netip.MustParsePrefix("192.168.0.0/22") {
		t.Errorf("hub %v in %v", table.HubAddress(), table.ControlPrefix())
	}
	if table.Network().Revision != x.Revision || len(table.Network().Nodes) != len(x.Nodes) {
		t.Error("it does not say its network")
	}
	var order []string
	slots := map[int]bool{}
	for m := range table.Members() {
		order = append(order, m.NodeID)
		slots[m.ID.Slot()] = true
	}
	if len(slots) != Slots || !slices.IsSorted(order) {
		t.Errorf("%d places, sorted: %v", len(slots), slices.IsSorted(order))
	}
	for range table.Members() {
		break // an iteration may end early
	}
	// All of them exchanged at once: every place is used again, no name is.
	y := networktest.Grid(contract.MaximumVPNNodes, 1)
	for i := range y.Nodes {
		y.Nodes[i].PublicKey = networktest.Key(1000 + i).String()
	}
	next := compile(t, table, y)
	for m := range table.Members() {
		if next.Member(m.ID) != nil {
			t.Fatalf("%s goes on", m.NodeID)
		}
	}
}
