package policy

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/network/networktest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// write writes down everything that a table consists of.
func write(t *Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d, revision %d, hub %v in %v\n", t.epoch, t.Revision(), t.hub, t.control)
	for m := range t.Members() {
		fmt.Fprintf(&b, "member %s: slot %d since %d, key %s, address %v, ends %d or %d\n",
			m.NodeID, m.ID.slot, m.ID.since, m.Key, m.ControlAddress, m.Deadline.Wall-admitted.Wall, m.Deadline.Mono-admitted.Mono)
	}
	for slot, m := range t.slots {
		if m != nil {
			fmt.Fprintf(&b, "slot %d: %s\n", slot, m.NodeID)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(t.keys), func(a, b contract.NoiseKey) int { return slices.Compare(a[:], b[:]) }) {
		fmt.Fprintf(&b, "key %s: %s\n", key, t.keys[key].NodeID)
	}
	for prefix, p := range t.prefixes.AllSorted4() {
		fmt.Fprintf(&b, "prefix %v: %s, domain %d %q\n", prefix, t.slots[p.slot].NodeID, p.domain, t.domains[p.domain])
	}
	for _, g := range slices.Sorted(maps.Keys(t.grants)) {
		fmt.Fprintf(&b, "grant %q to %q\n", t.domains[g>>16], t.domains[g&0xffff])
	}
	return b.String()
}

// evolving are three networks that follow one another: the second withdraws a node,
// exchanges a key, renews, moves a prefix and takes a grant back; the third brings
// the node back and another one with it.
func evolving() [3]contract.VPNNetwork {
	first := networktest.Grant(networktest.Grid(4, 2), "d0.0", "d1.0", "d1.0", "d0.0", "d2.1", "d3.0")
	second := networktest.Grant(networktest.Grid(4, 2), "d0.0", "d2.0", "d2.0", "d0.0")
	second.Revision = 2
	second.Nodes[0].ExpiresAt += 60_000
	second.Nodes[2].PublicKey = networktest.Key(20).String()
	second.Nodes[3].WorkloadPrefixes = append(second.Nodes[3].WorkloadPrefixes[1:],
		contract.VPNWorkload{CIDR: "172.16.0.0/12", PolicyDomain: "d3.1"})
	second.Nodes = slices.Delete(second.Nodes, 1, 2)
	third := networktest.Grid(5, 1)
	third.Revision = 9
	third.Nodes[2].PublicKey = networktest.Key(20).String()
	return [3]contract.VPNNetwork{first, second, third}
}

func TestGoldenTables(t *testing.T) {
	var table *Table
	var b strings.Builder
	for i, x := range evolving() {
		if request, err := contract.ReadApplyVPNNetworkRequest(contract.ApplyVPNNetworkRequest{Network: x}.AppendJSON(nil)); err != nil || !request.Network.Equal(x) {
			t.Fatalf("network %d: %v", i, err)
		}
		next, err := Compile(table, x, in(int64(i)*1000))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, write(next))
		table = next
	}
	fmt.Fprintln(&b, write(Empty(table)))
	golden(t, "tables.txt", b.String())
}

// R60: no network that would make a table ambiguous has one, the error names its place,
// and the table before stays.
func TestR60_WhatCannotBeCompiled(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*contract.VPNNetwork)
		want   string
	}{
		"no control prefix":      {func(x *contract.VPNNetwork) { x.ControlPrefix = "" }, "controlPrefix is not an ipv4 cidr"},
		"control prefix of ipv6": {func(x *contract.VPNNetwork) { x.ControlPrefix = "fd00::/64" }, "controlPrefix is not an ipv4 cidr"},
		"no room in it":          {func(x *contract.VPNNetwork) { x.ControlPrefix = "192.168.0.2/31" }, "controlPrefix is not an ipv4 cidr"},
		"too many nodes": {func(x *contract.VPNNetwork) { *x = networktest.Grid(257, 0) },
			"nodes has more than 256"},
		"node twice":           {func(x *contract.VPNNetwork) { x.Nodes[1].NodeID = x.Nodes[0].NodeID }, "nodes[1].nodeId is not in sorted order"},
		"nodes in wrong order": {func(x *contract.VPNNetwork) { x.Nodes[1].NodeID = "a" }, "nodes[1].nodeId is not in sorted order"},
		"no key":               {func(x *contract.VPNNetwork) { x.Nodes[1].PublicKey = "" }, "nodes[1].publicKey is not a noise key"},
		"key twice":            {func(x *contract.VPNNetwork) { x.Nodes[2].PublicKey = x.Nodes[0].PublicKey }, "nodes[2].publicKey is the key of another node"},
		"no address":           {func(x *contract.VPNNetwork) { x.Nodes[1].ControlAddress = "" }, "nodes[1].controlAddress is not"},
		"address elsewhere":    {func(x *contract.VPNNetwork) { x.Nodes[1].ControlAddress = "10.0.0.1" }, "nodes[1].controlAddress is not"},
		"address of the hub":   {func(x *contract.VPNNetwork) { x.Nodes[1].ControlAddress = "192.168.0.1" }, "nodes[1].controlAddress is not"},
		"address twice": {func(x *contract.VPNNetwork) { x.Nodes[1].ControlAddress = x.Nodes[0].ControlAddress },
			"nodes[1].controlAddress is the address of another node"},
		"too many prefixes": {func(x *contract.VPNNetwork) { x.Nodes[1] = networktest.Grid(2, 129).Nodes[1] },
			"nodes[1].workloadPrefixes has more than 128"},
		"no prefix":    {func(x *contract.VPNNetwork) { x.Nodes[1].WorkloadPrefixes[1].CIDR = "10.1.1.0" }, "nodes[1].workloadPrefixes[1].cidr is not an ipv4 cidr"},
		"prefix twice": {func(x *contract.VPNNetwork) { x.Nodes[1].WorkloadPrefixes[1].CIDR = "10.0.0.0/24" }, "nodes[1].workloadPrefixes[1].cidr overlaps another workload prefix"},
		"prefix inside another": {func(x *contract.VPNNetwork) { x.Nodes[1].WorkloadPrefixes[1].CIDR = "10.0.0.128/32" },
			"nodes[1].workloadPrefixes[1].cidr overlaps another workload prefix"},
		"prefix around others": {func(x *contract.VPNNetwork) { x.Nodes[1].WorkloadPrefixes[1].CIDR = "10.0.0.0/8" },
			"nodes[1].workloadPrefixes[1].cidr overlaps another workload prefix"},
		"prefix of the control plane": {func(x *contract.VPNNetwork) { x.Nodes[1].WorkloadPrefixes[1].CIDR = "192.168.3.0/24" },
			"nodes[1].workloadPrefixes[1].cidr overlaps the control prefix"},
		"domain of two nodes": {func(x *contract.VPNNetwork) { x.Nodes[1].WorkloadPrefixes[1].PolicyDomain = "d0.1" },
			"nodes[1].workloadPrefixes[1].policyDomain is a domain of another node"},
		"grant from nowhere":  {func(x *contract.VPNNetwork) { x.Grants[1].SourceDomain = "x" }, "grants[1].sourceDomain is not a domain of this network"},
		"grant to nowhere":    {func(x *contract.VPNNetwork) { x.Grants[1].DestinationDomain = "" }, "grants[1].destinationDomain is not a domain of this network"},
		"grant within a node": {func(x *contract.VPNNetwork) { x.Grants[1].DestinationDomain = "d0.1" }, "grants[1] joins two domains of one node"},
		"grant from a domain to itself": {func(x *contract.VPNNetwork) { x.Grants[1].DestinationDomain = x.Grants[1].SourceDomain },
			"grants[1] joins two domains of one node"},
	} {
		x := granted()
		tc.change(&x)
		prev := compile(t, nil, granted())
		before := write(prev)
		table, err := Compile(prev, x, admitted)
		if table != nil || err == nil || !strings.HasPrefix(err.Error(), "compiling the network: "+tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if after := write(prev); after != before {
			t.Errorf("%s: the table in force changed:\n%s", name, cmp.Diff(before, after))
		}
	}
}

// TestCompileIsTotal breaks networks at random: what its reader lets pass has a
// table, and nothing else panics.
func TestCompileIsTotal(t *testing.T) {
	texts := []string{"", "a", "node-0", "node-1", "10.0.0.0/8", "10.1.0.0/16", "10.255.0.0/26", "0.0.0.0/0", "10.255.0.1", "10.255.0.2",
		"::1", "node-0/0", "node-1/1", networktest.Key(0).String(), networktest.Key(1).String(), "255.255.255.255/32"}
	valid, compiled := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		x := networktest.Random(r, networktest.RandomNodes, 1)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			*aText(r, &x) = texts[r.IntN(len(texts))]
		}
		table, err := Compile(Empty(nil), x, network.Instant{})
		if (table == nil) != (err != nil) {
			t.Fatalf("table %v, error %v", table, err)
		}
		if err == nil {
			compiled++
		}
		if x.Validate() == nil {
			valid++
			if err != nil {
				t.Fatal(err)
			}
		}
		if table != nil {
			tr := newTraffic(r, networktest.Random(r, networktest.RandomNodes, 1))
			for m := range table.Members() {
				p, _ := tr.next()
				table.Judge(p, m.ID, admitted)
				table.Explain(netip.AddrFrom4(tr.address(tr.addresses)), netip.AddrFrom4(tr.address(tr.addresses)), admitted)
			}
		}
	})
	t.Logf("%d networks compiled, %d were valid", compiled, valid)
}

// aText returns one of the texts of a network.
func aText(r *rand.Rand, x *contract.VPNNetwork) *string {
	all := []*string{&x.AuthorityID, &x.ControlPrefix}
	for i := range x.Nodes {
		n := &x.Nodes[i]
		all = append(all, &n.NodeID, &n.PublicKey, &n.ControlAddress)
		for j := range n.WorkloadPrefixes {
			all = append(all, &n.WorkloadPrefixes[j].CIDR, &n.WorkloadPrefixes[j].PolicyDomain)
		}
	}
	for i := range min(len(x.Grants), 20) {
		all = append(all, &x.Grants[i].SourceDomain, &x.Grants[i].DestinationDomain)
	}
	return all[r.IntN(len(all))]
}
