package network

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network/networktest"
)

// drawNetwork draws a random network, or none.
func drawNetwork(t *rapid.T, label string) *contract.VPNNetwork {
	nodes := rapid.IntRange(-1, networktest.RandomNodes).Draw(t, label+" nodes")
	if nodes < 0 {
		return nil
	}
	x := networktest.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, label+" seed"), 0)), nodes, 1)
	return &x
}

// R66: a membership goes on over changed grants, expiry and prefixes, and ends by
// another key or address, or by being left out.
func TestR66_MembershipContinues(t *testing.T) {
	node := func(i int, f func(*contract.VPNNode)) func(*contract.VPNNetwork) {
		return func(x *contract.VPNNetwork) { f(&x.Nodes[i]) }
	}
	both := func(first, second Fate) []Passage {
		return []Passage{{"node-000", first, 0, 0}, {"node-001", second, 1, 1}}
	}
	for name, tc := range map[string]struct {
		next contract.VPNNetwork
		want []Passage
	}{
		"the same":       {with(), both(Continues, Continues)},
		"next revision":  {with(revision(8)), both(Continues, Continues)},
		"grants go":      {with(noGrants), both(Continues, Continues)},
		"renewed":        {with(node(0, func(n *contract.VPNNode) { n.ExpiresAt++ })), both(Continues, Continues)},
		"shortened":      {with(node(0, func(n *contract.VPNNode) { n.ExpiresAt = 1 })), both(Continues, Continues)},
		"prefixes go":    {with(node(1, func(n *contract.VPNNode) { n.WorkloadPrefixes = nil })), both(Continues, Continues)},
		"domain changes": {with(node(1, func(n *contract.VPNNode) { n.WorkloadPrefixes[0].PolicyDomain = "x" })), both(Continues, Continues)},
		"other key": {with(node(0, func(n *contract.VPNNode) { n.PublicKey = networktest.Key(9).String() })),
			both(KeyChanged, Continues)},
		"other address": {with(node(1, func(n *contract.VPNNode) { n.ControlAddress = "192.168.0.9" })),
			both(Continues, AddressChanged)},
		"other key and address": {with(node(1, func(n *contract.VPNNode) {
			n.PublicKey, n.ControlAddress = networktest.Key(9).String(), "192.168.0.9"
		})), both(Continues, KeyChanged)},
		"keys exchanged": {with(node(0, func(n *contract.VPNNode) { n.PublicKey = networktest.Key(1).String() }),
			node(1, func(n *contract.VPNNode) { n.PublicKey = networktest.Key(0).String() })), both(KeyChanged, KeyChanged)},
		"other authority": {with(authority("b")), both(AddressChanged, AddressChanged)},
		"other prefix":    {with(controlPrefix("192.168.0.0/21")), both(AddressChanged, AddressChanged)},
		"first withdrawn": {with(func(x *contract.VPNNetwork) { x.Nodes = x.Nodes[1:] }),
			[]Passage{{"node-000", Withdrawn, 0, -1}, {"node-001", Continues, 1, 0}}},
		"last withdrawn": {with(func(x *contract.VPNNetwork) { x.Nodes = x.Nodes[:1] }),
			[]Passage{{"node-000", Continues, 0, 0}, {"node-001", Withdrawn, 1, -1}}},
		"key moved to another node": {with(node(1, func(n *contract.VPNNode) { n.NodeID = "node-002" })),
			[]Passage{{"node-000", Continues, 0, 0}, {"node-001", Withdrawn, 1, -1}, {"node-002", Joined, -1, 1}}},
		"all withdrawn": {with(func(x *contract.VPNNetwork) { x.Nodes = nil }),
			[]Passage{{"node-000", Withdrawn, 0, -1}, {"node-001", Withdrawn, 1, -1}}},
		"one joins before": {with(node(0, func(n *contract.VPNNode) { n.NodeID = "a" })),
			[]Passage{{"a", Joined, -1, 0}, {"node-000", Withdrawn, 0, -1}, {"node-001", Continues, 1, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			held := with()
			if diff := cmp.Diff(tc.want, Compare(&held, &tc.next)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	held := with()
	if diff := cmp.Diff([]Passage{{"node-000", Joined, -1, 0}, {"node-001", Joined, -1, 1}}, Compare(nil, &held)); diff != "" {
		t.Errorf("into an empty hub:\n%s", diff)
	}
	if diff := cmp.Diff([]Passage{{"node-000", Withdrawn, 0, -1}, {"node-001", Withdrawn, 1, -1}}, Compare(&held, nil)); diff != "" {
		t.Errorf("emptied:\n%s", diff)
	}
	if got := Compare(nil, nil); len(got) != 0 {
		t.Errorf("nothing to nothing: %v", got)
	}
}

// R66: of any two networks, what becomes of each membership is what looking every node
// up in both says.
func TestR66_MembershipAgreesWithEveryPair(t *testing.T) {
	find := func(x *contract.VPNNetwork, id string) int {
		if x == nil {
			return -1
		}
		return slices.IndexFunc(x.Nodes, func(n contract.VPNNode) bool { return n.NodeID == id })
	}
	seen := map[Fate]int{}
	rapid.Check(t, func(t *rapid.T) {
		held, next := drawNetwork(t, "held"), drawNetwork(t, "next")
		ids := map[string]bool{}
		for _, x := range []*contract.VPNNetwork{held, next} {
			for i := 0; x != nil && i < len(x.Nodes); i++ {
				ids[x.Nodes[i].NodeID] = true
			}
		}
		passages := Compare(held, next)
		if len(passages) != len(ids) || !slices.IsSortedFunc(passages, func(a, b Passage) int { return strings.Compare(a.NodeID, b.NodeID) }) {
			t.Fatalf("%v is not one passage for each of %v, sorted", passages, ids)
		}
		for _, p := range passages {
			h, n := find(held, p.NodeID), find(next, p.NodeID)
			want := Continues
			switch {
			case h < 0 && n < 0:
				t.Fatalf("%v is of neither", p)
			case h < 0:
				want = Joined
			case n < 0:
				want = Withdrawn
			case held.Nodes[h].PublicKey != next.Nodes[n].PublicKey:
				want = KeyChanged
			case held.Nodes[h].ControlAddress != next.Nodes[n].ControlAddress:
				want = AddressChanged
			}
			if p != (Passage{p.NodeID, want, h, n}) {
				t.Fatalf("%v, want %v of %d and %d", p, want, h, n)
			}
			seen[want]++
		}
	})
	for f := range Fates {
		if seen[f] == 0 {
			t.Errorf("no member's fate was %v", f)
		}
	}
}

func TestFates(t *testing.T) {
	var names []string
	for f := range Fates {
		if f.String() == "" || slices.Contains(names, f.String()) {
			t.Errorf("fate %d has no name of its own", f)
		}
		names = append(names, f.String())
		if want := f != Continues && f != Joined; f.Ends() != want {
			t.Errorf("%v: ends is %v", f, f.Ends())
		}
	}
}
