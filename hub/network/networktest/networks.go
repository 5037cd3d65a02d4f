package networktest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strconv"

	"serve.zone/relay/contract"
)

// Admitted is a time at which all networks of this package are in force: every
// member of Grid expires an hour later. Unix milliseconds.
const Admitted int64 = 1_767_225_600_000

// Lifetime is how long members of Grid last from Admitted on, in milliseconds.
const Lifetime int64 = 3_600_000

// Key is the public key number n.
func Key(n int) contract.NoiseKey {
	var key contract.NoiseKey
	binary.BigEndian.PutUint32(key[:], uint32(n))
	return key
}

// Grid is a network of so many nodes with so many workload prefixes each, and no
// grants. Node i, "node-00i", has key i, control address 192.168.0.2 + i, and the
// prefixes 10.i.j.0/24 with a domain each, "d" and i and "." and j.
func Grid(nodes, prefixes int) contract.VPNNetwork {
	x := contract.VPNNetwork{
		AuthorityID: "authority:1", ControlPrefix: "192.168.0.0/22", Revision: 1,
		Nodes: []contract.VPNNode{}, Grants: []contract.VPNGrant{},
	}
	for i := range nodes {
		n := contract.VPNNode{
			NodeID: fmt.Sprintf("node-%03d", i), PublicKey: Key(i).String(),
			ControlAddress: netip.AddrFrom4([4]byte{192, 168, byte((i + 2) >> 8), byte(i + 2)}).String(),
			ExpiresAt:      Admitted + Lifetime, WorkloadPrefixes: []contract.VPNWorkload{},
		}
		for j := range prefixes {
			n.WorkloadPrefixes = append(n.WorkloadPrefixes, contract.VPNWorkload{
				CIDR: fmt.Sprintf("10.%d.%d.0/24", i, j), PolicyDomain: fmt.Sprintf("d%d.%d", i, j),
			})
		}
		sortPrefixes(&n)
		x.Nodes = append(x.Nodes, n)
	}
	return x
}

// Grant adds grants, given as source, destination, source, destination, and sorts
// all of them.
func Grant(x contract.VPNNetwork, pairs ...string) contract.VPNNetwork {
	x.Grants = slices.Clone(x.Grants)
	for pair := range slices.Chunk(pairs, 2) {
		x.Grants = append(x.Grants, contract.VPNGrant{SourceDomain: pair[0], DestinationDomain: pair[1]})
	}
	sortGrants(&x)
	return x
}

// Wide is network W of design §5.5: 256 members, short domain names, as many
// prefixes as fit, every member granted the next one, and that one back.
func Wide() contract.VPNNetwork {
	fitting := func(prefixes int) contract.VPNNetwork {
		x := short(Grid(contract.MaximumVPNNodes, prefixes))
		for i := range x.Nodes {
			next := (i + 1) % len(x.Nodes)
			x = join(x, i, next)
			x = join(x, next, i)
		}
		sortGrants(&x)
		return x
	}
	tooMany := sort.Search(contract.MaximumVPNPrefixes, func(prefixes int) bool {
		return prefixes > 0 && fitting(prefixes).CanonicalLength() > contract.VPNNetworkLimit
	})
	return fitting(tooMany - 1)
}

// Granting is network G of design §5.5: 256 members with 4 prefixes each, and 4096
// grants between short names.
func Granting() contract.VPNNetwork {
	x := short(Grid(contract.MaximumVPNNodes, 4))
	for far := 1; len(x.Grants) < contract.MaximumVPNGrants; far++ {
		for i := range x.Nodes {
			x = join(x, i, (i+far)%len(x.Nodes))
		}
	}
	sortGrants(&x)
	return x
}

// Beyond has 256 members with 128 prefixes each. Its bounds are those of contract
// §10.2, save its size: it is for measuring compilers alone.
func Beyond() contract.VPNNetwork {
	return short(Grid(contract.MaximumVPNNodes, contract.MaximumVPNPrefixes))
}

// short gives every prefix a domain with a name as short as can be.
func short(x contract.VPNNetwork) contract.VPNNetwork {
	number := int64(0)
	for i := range x.Nodes {
		for j := range x.Nodes[i].WorkloadPrefixes {
			x.Nodes[i].WorkloadPrefixes[j].PolicyDomain = strconv.FormatInt(number, 36)
			number++
		}
	}
	return x
}

// join grants the way from the first domain of one node to the first of another.
func join(x contract.VPNNetwork, from, to int) contract.VPNNetwork {
	x.Grants = append(x.Grants, contract.VPNGrant{
		SourceDomain:      x.Nodes[from].WorkloadPrefixes[0].PolicyDomain,
		DestinationDomain: x.Nodes[to].WorkloadPrefixes[0].PolicyDomain,
	})
	return x
}

func sortPrefixes(n *contract.VPNNode) {
	slices.SortFunc(n.WorkloadPrefixes, func(a, b contract.VPNWorkload) int { return cmp.Compare(a.CIDR, b.CIDR) })
}

func sortGrants(x *contract.VPNNetwork) {
	slices.SortFunc(x.Grants, func(a, b contract.VPNGrant) int {
		return cmp.Or(cmp.Compare(a.SourceDomain, b.SourceDomain), cmp.Compare(a.DestinationDomain, b.DestinationDomain))
	})
}
