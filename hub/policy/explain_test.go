package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"serve.zone/relay/hub/network/networktest"
)

func explain(table *Table, from, to string, ms int64) Explanation {
	return table.Explain(netip.MustParseAddr(from), netip.MustParseAddr(to), in(ms))
}

// TestGoldenExplanations shows what a person is told, for every reason that a table
// can give between two addresses.
func TestGoldenExplanations(t *testing.T) {
	x := granted()
	x.Nodes[2].WorkloadPrefixes[0].CIDR = "224.0.0.0/3"
	x.Nodes[2].WorkloadPrefixes[0].PolicyDomain, x.Grants[2].DestinationDomain = `a "domain"`, `a "domain"`
	table := compile(t, nil, x)
	var b strings.Builder
	for _, way := range [][2]string{
		{"10.0.0.7", "10.1.0.9"},        // granted
		{"10.1.0.9", "10.0.0.7"},        // the other way
		{"10.0.1.7", "10.1.0.9"},        // neither way
		{"10.1.0.9", "240.0.0.1"},       // a name with quotes
		{"10.0.0.7", "10.0.1.9"},        // within a node
		{"10.0.0.7", "8.8.8.8"},         // out
		{"8.8.8.8", "10.0.0.7"},         // in
		{"10.0.0.7", "10.3.0.1"},        // to one that has expired
		{"10.3.0.1", "10.0.0.7"},        // from it
		{"192.168.0.5", "192.168.0.1"},  // its ping
		{"192.168.0.2", "192.168.0.1"},  // a ping
		{"192.168.0.2", "192.168.0.3"},  // to another node
		{"192.168.0.2", "10.1.0.9"},     // to a workload
		{"10.0.0.7", "192.168.0.1"},     // from a workload to the hub
		{"10.0.0.7", "192.168.0.3"},     // to a node
		{"10.0.0.7", "192.168.1.1"},     // to nobody
		{"192.168.0.1", "192.168.0.2"},  // from the hub's address
		{"192.168.1.1", "192.168.0.2"},  // from nobody's
		{"10.0.0.7", "224.0.0.251"},     // multicast
		{"224.0.0.251", "10.0.0.7"},     // from it, in a prefix
		{"0.0.0.0", "10.0.0.7"},         // from no address
		{"10.0.0.7", "255.255.255.255"}, // broadcast
		{"10.0.0.7", "fd00::1"},         // ipv6
		{"::ffff:10.0.0.7", "10.1.0.9"}, // the same
		{"2001:db8::1", "2001:db8::2"},  // all of it
		{"10.0.0.255", "10.1.0.0"},      // granted, at the ends of prefixes
	} {
		e := explain(table, way[0], way[1], 0)
		fmt.Fprintln(&b, e.Sentence)
		if e.Revision != 1 || e.From.Address.String() != way[0] || e.To.Address.String() != way[1] {
			t.Errorf("%v: %+v", way, e)
		}
	}
	late := in(networktest.Lifetime)
	late.Wall -= networktest.Lifetime
	fmt.Fprintln(&b, table.Explain(netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.1.0.9"), late).Sentence)
	fmt.Fprintln(&b, explain(Empty(table), "10.0.0.7", "10.1.0.9", 0).Sentence)
	golden(t, "explanations.txt", b.String())
}

func TestExplanationSaysTheRule(t *testing.T) {
	table := compile(t, nil, granted())
	got := explain(table, "10.0.0.7", "10.1.0.9", 0)
	want := Explanation{
		Action: Relay, Revision: 1,
		From:     End{netip.MustParseAddr("10.0.0.7"), "node-000", netip.MustParsePrefix("10.0.0.0/24"), "d0.0"},
		To:       End{netip.MustParseAddr("10.1.0.9"), "node-001", netip.MustParsePrefix("10.1.0.0/24"), "d1.0"},
		Sentence: got.Sentence,
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	got = explain(table, "192.168.0.3", "192.168.0.1", 0)
	want = Explanation{Action: Echo, Revision: 1, From: End{Address: netip.MustParseAddr("192.168.0.3"), NodeID: "node-001"},
		To: End{Address: netip.MustParseAddr("192.168.0.1")}, Sentence: got.Sentence}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (Explanation{}); got.Action != Drop {
		t.Errorf("the zero value is %v", got.Action)
	}
	if got := explain(Empty(nil), "10.0.0.7", "10.1.0.9", 0); got.Action != Drop || got.Reason != SenderUnknown || got.Revision != 0 {
		t.Errorf("without a network: %+v", got)
	}
	if got := Empty(nil).Explain(netip.Addr{}, netip.Addr{}, admitted); got.Action != Drop {
		t.Errorf("no addresses: %+v", got)
	}
}

// TestExplainAgreesWithJudge sends what was explained: the packet of the node that
// has the source meets the same end for the same reason.
func TestExplainAgreesWithJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		x := networktest.Random(r, networktest.RandomNodes, 1)
		table := compile(t, nil, x)
		o := newOracle(x, admitted)
		tr := newTraffic(r, x)
		for range 500 {
			_, s, d := tr.ends()
			from, to := netip.AddrFrom4(s), netip.AddrFrom4(d)
			now := tr.now()
			e := table.Explain(from, to, now)
			p := packet(from.String(), to.String(), echo)
			sender := o.owner(from)
			id := ID{}
			if sender != "" {
				id = table.node(sender).ID
			}
			got := said(Verdict{Action: e.Action, Reason: e.Reason, To: toNode(table, e)})
			want := said(table.Judge(p, id, now))
			if sender == "" && len(x.Nodes) > 0 {
				// Nobody's own: what any member is told that sends it, and that has not expired.
				want = "drop source-spoofed"
				if unspecified.Contains(from) || multicast.Contains(from) || everybody.Contains(from) {
					want = "drop source-not-unicast"
				}
			}
			if len(x.Nodes) > 0 && got != want {
				t.Fatalf("%v to %v at %+v: %s (%s), want %s", from, to, now, got, e.Sentence, want)
			}
		}
	})
}

// owner returns the node that has an address.
func (o *oracle) owner(a netip.Addr) string {
	if node, _ := o.find(a); node != nil {
		return node.NodeID
	}
	for i := range o.network.Nodes {
		if o.network.Nodes[i].ControlAddress == a.String() {
			return o.network.Nodes[i].NodeID
		}
	}
	return ""
}

func toNode(table *Table, e Explanation) *Member {
	if e.Action != Relay {
		return nil
	}
	return table.node(e.To.NodeID)
}
