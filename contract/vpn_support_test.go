package contract

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// vpnNetwork builds a valid network of so many nodes and workload prefixes of
// each, without grants.
func vpnNetwork(nodes, prefixes int) VPNNetwork {
	x := VPNNetwork{AuthorityID: "authority:1", ControlPrefix: "192.168.0.0/22", Revision: 7, Nodes: []VPNNode{}, Grants: []VPNGrant{}}
	for i := range nodes {
		var key NoiseKey
		binary.BigEndian.PutUint32(key[:], uint32(i))
		n := VPNNode{
			NodeID:         fmt.Sprintf("node-%03d", i),
			PublicKey:      key.String(),
			ControlAddress: netip.AddrFrom4([4]byte{192, 168, byte((i + 2) >> 8), byte(i + 2)}).String(),
			ExpiresAt:      1_767_225_600_000, WorkloadPrefixes: []VPNWorkload{},
		}
		for j := range prefixes {
			n.WorkloadPrefixes = append(n.WorkloadPrefixes, VPNWorkload{
				CIDR:         fmt.Sprintf("10.%d.0.%d/32", i, j),
				PolicyDomain: fmt.Sprintf("d%d.%d", i, j),
			})
		}
		slices.SortFunc(n.WorkloadPrefixes, func(a, b VPNWorkload) int { return cmp.Compare(a.CIDR, b.CIDR) })
		x.Nodes = append(x.Nodes, n)
	}
	return x
}

// grantAll adds n grants, from the domains of each node to those of all others,
// and sorts them.
func grantAll(x VPNNetwork, n int) VPNNetwork {
	for i := range x.Nodes {
		for j := range x.Nodes {
			for _, source := range x.Nodes[i].WorkloadPrefixes {
				for _, destination := range x.Nodes[j].WorkloadPrefixes {
					if i != j && len(x.Grants) < n {
						x.Grants = append(x.Grants, VPNGrant{source.PolicyDomain, destination.PolicyDomain})
					}
				}
			}
		}
	}
	slices.SortFunc(x.Grants, VPNGrant.compare)
	return x
}

// fill lengthens policy domains until the network has exactly so many canonical
// bytes.
func fill(t testing.TB, x VPNNetwork, size int) VPNNetwork {
	rest := size - x.CanonicalLength()
	for i := range x.Nodes {
		for j := range x.Nodes[i].WorkloadPrefixes {
			domain := &x.Nodes[i].WorkloadPrefixes[j].PolicyDomain
			n := min(rest, maximumPolicyDomainLength-len(*domain))
			if n > 0 {
				*domain += strings.Repeat("x", n)
				rest -= n
			}
		}
	}
	if got := x.CanonicalLength(); got != size {
		t.Fatalf("built a network of %d canonical bytes, not %d", got, size)
	}
	return x
}

// largestNetwork has 256 members, as many prefixes as fit and exactly the bytes
// that the contract admits.
func largestNetwork(t testing.TB) VPNNetwork {
	return fill(t, vpnNetwork(MaximumVPNNodes, 68), VPNNetworkLimit)
}

// drawVPNNetwork draws a valid network.
func drawVPNNetwork(t *rapid.T) VPNNetwork {
	x := vpnNetwork(rapid.IntRange(0, 5).Draw(t, "nodes"), rapid.IntRange(0, 4).Draw(t, "prefixes"))
	x.AuthorityID = drawIdentifier(t, "authorityId")
	x.Revision = drawCounter(t, "revision")
	for i := range x.Nodes {
		n := &x.Nodes[i]
		n.NodeID = fmt.Sprintf("%d", i) + drawNodeID(t, "nodeId")[1:]
		n.ExpiresAt = drawCount(t, "expiresAt")
		for j := range n.WorkloadPrefixes {
			n.WorkloadPrefixes[j].PolicyDomain += rapid.StringMatching(`[ -~]{0,8}`).Draw(t, "domain")
		}
	}
	all := grantAll(x, 1000).Grants
	x.Grants = []VPNGrant{}
	for _, g := range all {
		if rapid.Bool().Draw(t, "granted") {
			x.Grants = append(x.Grants, g)
		}
	}
	return x
}
