package networktest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"serve.zone/relay/contract"
)

// RandomNodes is how many nodes a random network may have.
const RandomNodes = 8

// Random is a network of authority:1 on 10.255.0.0/26 with at most that many
// nodes, at most RandomNodes.
//
// Two of them share most of what they have: a node is mostly there, mostly with
// the same key and address, sometimes with those of another node. Prefixes and
// grants are drawn anew. Expiries lie around Admitted, some of them before.
// Now and then a prefix covers addresses that belong to no host.
func Random(r *rand.Rand, nodes int, revision int64) contract.VPNNetwork {
	x := contract.VPNNetwork{
		AuthorityID: "authority:1", ControlPrefix: "10.255.0.0/26", Revision: revision,
		Nodes: []contract.VPNNode{}, Grants: []contract.VPNGrant{},
	}
	for i := range min(nodes, RandomNodes) {
		if r.IntN(6) == 0 {
			continue
		}
		x.Nodes = append(x.Nodes, contract.VPNNode{
			NodeID: fmt.Sprintf("node-%d", i), PublicKey: Key(i + RandomNodes*odd(r)).String(),
			ControlAddress:   netip.AddrFrom4([4]byte{10, 255, 0, byte(2 + i + RandomNodes*odd(r))}).String(),
			ExpiresAt:        Admitted - 10 + r.Int64N(60),
			WorkloadPrefixes: []contract.VPNWorkload{},
		})
	}
	if len(x.Nodes) > 1 && odd(r) == 1 {
		a, b := &x.Nodes[0], &x.Nodes[len(x.Nodes)-1]
		a.PublicKey, b.PublicKey = b.PublicKey, a.PublicKey
	}
	if len(x.Nodes) > 0 {
		addPrefixes(r, &x)
		addGrants(r, &x)
	}
	return x
}

// odd is mostly 0, and 1 sometimes.
func odd(r *rand.Rand) int {
	if r.IntN(8) == 0 {
		return 1
	}
	return 0
}

// oddPrefixes cover addresses that belong to no host.
var oddPrefixes = []string{"0.0.0.0/5", "128.0.0.0/2", "224.0.0.0/4", "240.0.0.0/4"}

// addPrefixes gives every node prefixes of all lengths that lie beside each other,
// some of them directly.
func addPrefixes(r *rand.Rand, x *contract.VPNNetwork) {
	add := func(cidr string) {
		i := r.IntN(len(x.Nodes))
		x.Nodes[i].WorkloadPrefixes = append(x.Nodes[i].WorkloadPrefixes, contract.VPNWorkload{
			CIDR: cidr, PolicyDomain: fmt.Sprintf("%s/%d", x.Nodes[i].NodeID, r.IntN(3)),
		})
	}
	for block := range 2 * RandomNodes {
		a := netip.AddrFrom4([4]byte{10, byte(block), byte(r.IntN(256)), byte(r.IntN(256))})
		add(netip.PrefixFrom(a, 16+r.IntN(17)).Masked().String())
	}
	add("10.200.0.0/25")
	add("10.200.0.128/25")
	add("10.200.1.0/32")
	for _, cidr := range oddPrefixes {
		if odd(r) == 1 {
			add(cidr)
		}
	}
	for i := range x.Nodes {
		sortPrefixes(&x.Nodes[i])
	}
}

// addGrants grants every third way between two nodes.
func addGrants(r *rand.Rand, x *contract.VPNNetwork) {
	for i := range x.Nodes {
		for j := range x.Nodes {
			for _, source := range x.Nodes[i].WorkloadPrefixes {
				for _, destination := range x.Nodes[j].WorkloadPrefixes {
					if i != j && r.IntN(3) == 0 {
						x.Grants = append(x.Grants, contract.VPNGrant{
							SourceDomain: source.PolicyDomain, DestinationDomain: destination.PolicyDomain,
						})
					}
				}
			}
		}
	}
	sortGrants(x)
	x.Grants = slices.Compact(x.Grants)
}
