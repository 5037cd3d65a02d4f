package contract

import (
	"net/netip"
	"strings"
)

// Validate returns one named reason for each violation of contract §10.2.
//
// Lists are sorted by UTF-16 code units. Every text they are sorted by is ASCII
// by its own grammar, where that is the order of bytes.
func (x VPNNetwork) Validate() []string { return reasonsOf(x.judge) }

func (x VPNNetwork) judge(v *verdict) {
	v.require(x.CanonicalLength() <= VPNNetworkLimit, "", "has more than 917504 canonical bytes")
	v.identifier("authorityId", x.AuthorityID)
	// Bytes and not characters, because that is what a hub counts.
	v.require(len(x.AuthorityID) <= MaximumAuthorityIDBytes, "authorityId", "has more than 128 utf-8 bytes")
	control := newControlSubnet(v, x.ControlPrefix)
	v.counter("revision", x.Revision)
	v.require(len(x.Nodes) <= MaximumVPNNodes, "nodes", "has more than 256 nodes")
	members := newMembership(x.Nodes)
	v.enter("nodes")
	for i := range x.Nodes {
		v.enterIndex(i)
		if i > 0 {
			v.ascending("nodeId", x.Nodes[i-1].NodeID, x.Nodes[i].NodeID)
		}
		members.judgeNode(v, i, &x.Nodes[i], control)
		v.leave()
	}
	members.prefixes.judgeOverlap(v)
	v.leave()
	members.judgeGrants(v, x.Grants)
}

// membership is what the nodes of one network must not share.
type membership struct {
	keys      map[string]bool
	addresses map[string]bool
	domains   map[string]int // policy domain to the node that carries it
	prefixes  placedPrefixes
}

func newMembership(nodes []VPNNode) *membership {
	prefixes := 0
	for i := range nodes {
		prefixes += len(nodes[i].WorkloadPrefixes)
	}
	return &membership{
		keys:      make(map[string]bool, len(nodes)),
		addresses: make(map[string]bool, len(nodes)),
		domains:   make(map[string]int, prefixes),
		prefixes:  make(placedPrefixes, 0, prefixes),
	}
}

func (m *membership) judgeNode(v *verdict, i int, n *VPNNode, control controlSubnet) {
	v.nodeID("nodeId", n.NodeID)
	v.noiseKey("publicKey", n.PublicKey)
	v.require(!m.keys[n.PublicKey], "publicKey", "is the key of another node")
	m.keys[n.PublicKey] = true
	control.judgeAddress(v, n.ControlAddress)
	v.require(!m.addresses[n.ControlAddress], "controlAddress", "is the address of another node")
	m.addresses[n.ControlAddress] = true
	v.unixMilliseconds("expiresAt", n.ExpiresAt)
	v.require(len(n.WorkloadPrefixes) <= MaximumVPNPrefixes, "workloadPrefixes", "has more than 128 prefixes")
	v.enter("workloadPrefixes")
	for j, p := range n.WorkloadPrefixes {
		v.enterIndex(j)
		if j > 0 {
			v.ascending("cidr", n.WorkloadPrefixes[j-1].CIDR, p.CIDR)
		}
		m.judgePrefix(v, i, j, p, control)
		v.leave()
	}
	v.leave()
}

func (m *membership) judgePrefix(v *verdict, i, j int, p VPNWorkload, control controlSubnet) {
	prefix, ok := ParseIPv4Prefix(p.CIDR)
	v.require(ok, "cidr", "is not a canonical ipv4 cidr")
	if ok {
		v.require(!control.prefix.Overlaps(prefix), "cidr", "overlaps the control prefix")
		m.prefixes.add(prefix, i, j)
	}
	v.policyDomain("policyDomain", p.PolicyDomain)
	carrier, carried := m.domains[p.PolicyDomain]
	v.require(!carried || carrier == i, "policyDomain", "is a domain of another node")
	if !carried {
		m.domains[p.PolicyDomain] = i
	}
}

func (m *membership) judgeGrants(v *verdict, grants []VPNGrant) {
	v.require(len(grants) <= MaximumVPNGrants, "grants", "has more than 4096 grants")
	v.enter("grants")
	for i, g := range grants {
		v.enterIndex(i)
		if i > 0 {
			v.require(grants[i-1] != g, "", "repeats the one before")
			v.require(grants[i-1].compare(g) <= 0, "", "is not in sorted order")
		}
		source, ok := m.domains[g.SourceDomain]
		v.require(ok, "sourceDomain", "is not a domain of this network")
		destination, found := m.domains[g.DestinationDomain]
		v.require(found, "destinationDomain", "is not a domain of this network")
		v.require(!ok || !found || source != destination, "", "joins two domains of one node")
		v.leave()
	}
	v.leave()
}

func (x VPNGrant) compare(other VPNGrant) int {
	if c := strings.Compare(x.SourceDomain, other.SourceDomain); c != 0 {
		return c
	}
	return strings.Compare(x.DestinationDomain, other.DestinationDomain)
}

// ascending judges a member by which a list is sorted and unique.
func (v *verdict) ascending(member, before, s string) {
	v.require(before != s, member, "repeats the one before")
	v.require(before <= s, member, "is not in sorted order")
}

// controlSubnet is the control prefix of a network, zero when it is not valid.
type controlSubnet struct {
	prefix         netip.Prefix
	hub, broadcast netip.Addr
}

// newControlSubnet judges the control prefix as the address plan's reader does
// (contract §10.2). The private ranges keep it at /8 or longer.
func newControlSubnet(v *verdict, s string) controlSubnet {
	prefix, ok := ParseIPv4Prefix(s)
	if !ok {
		v.addAt("controlPrefix", "is not a canonical ipv4 cidr")
		return controlSubnet{}
	}
	v.require(isPrivatePrefix(prefix), "controlPrefix", "is not inside a private range")
	v.require(prefix.Bits() <= MaximumControlPrefixLength, "controlPrefix", "is longer than 30 bits")
	_, last := addressRange(prefix)
	return controlSubnet{prefix: prefix, hub: prefix.Addr().Next(), broadcast: addressOf(last)}
}

// judgeAddress judges the control address of a node. The subnet's first host
// address is the hub's own (contract O24).
func (c controlSubnet) judgeAddress(v *verdict, s string) {
	a, ok := ParseIPv4(s)
	if !ok {
		v.addAt("controlAddress", string(AddressNotIPv4))
		return
	}
	if !c.prefix.IsValid() {
		return
	}
	switch {
	case !c.prefix.Contains(a):
		v.addAt("controlAddress", "is not inside the control prefix")
	case a == c.prefix.Addr():
		v.addAt("controlAddress", "is the network address of the control prefix")
	case a == c.broadcast:
		v.addAt("controlAddress", "is the broadcast address of the control prefix")
	case a == c.hub:
		v.addAt("controlAddress", "is the address of the hub")
	}
}
