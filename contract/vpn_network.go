package contract

import "slices"

// VPNNetwork is IClusterVpnNetwork: the whole managed VPN of one cluster, never
// a patch. A node or a grant that it does not carry is withdrawn
// (contract §10.2).
type VPNNetwork struct {
	AuthorityID   string     // canonical identifier, at most MaximumAuthorityIDBytes
	ControlPrefix string     // private IPv4 CIDR, at most MaximumControlPrefixLength
	Revision      int64      // counter
	Nodes         []VPNNode  // sorted by NodeID, at most MaximumVPNNodes
	Grants        []VPNGrant // sorted by both ends, at most MaximumVPNGrants
}

// VPNNode is one member of a network.
type VPNNode struct {
	NodeID           string        // node id
	PublicKey        string        // canonical Noise key, of this node alone
	ControlAddress   string        // IPv4 literal inside the control prefix, of this node alone
	ExpiresAt        int64         // end of the node's credential in Unix milliseconds
	WorkloadPrefixes []VPNWorkload // sorted by CIDR, at most MaximumVPNPrefixes
}

// VPNWorkload is one workload prefix of a node and the policy domain that
// grants know it by.
type VPNWorkload struct {
	CIDR         string // canonical IPv4 CIDR; no two of a network overlap
	PolicyDomain string // opaque, compared exactly, on one node alone (contract O24)
}

// VPNGrant lets packets pass in one direction between two domains that the
// network carries on two different nodes.
type VPNGrant struct {
	SourceDomain      string
	DestinationDomain string
}

func readVPNNetwork(x *VPNNetwork) valueReader { return x.shape() }

func (x *VPNNetwork) shape() valueReader {
	return object(
		required("authorityId", text(&x.AuthorityID)),
		required("controlPrefix", text(&x.ControlPrefix)),
		required("revision", integer(&x.Revision)),
		required("nodes", list(&x.Nodes, MaximumVPNNodes+1, readVPNNode)),
		required("grants", list(&x.Grants, MaximumVPNGrants+1, readVPNGrant)),
	)
}

func readVPNNode(x *VPNNode) valueReader {
	return object(
		required("nodeId", text(&x.NodeID)),
		required("publicKey", text(&x.PublicKey)),
		required("controlAddress", text(&x.ControlAddress)),
		required("expiresAt", integer(&x.ExpiresAt)),
		required("workloadPrefixes", list(&x.WorkloadPrefixes, MaximumVPNPrefixes+1, readVPNWorkload)),
	)
}

func readVPNWorkload(x *VPNWorkload) valueReader {
	return object(
		required("cidr", text(&x.CIDR)),
		required("policyDomain", text(&x.PolicyDomain)),
	)
}

func readVPNGrant(x *VPNGrant) valueReader {
	return object(
		required("sourceDomain", text(&x.SourceDomain)),
		required("destinationDomain", text(&x.DestinationDomain)),
	)
}

// Equal reports whether two valid networks have the same canonical content.
func (x VPNNetwork) Equal(other VPNNetwork) bool {
	return x.AuthorityID == other.AuthorityID && x.ControlPrefix == other.ControlPrefix &&
		x.Revision == other.Revision && slices.Equal(x.Grants, other.Grants) &&
		slices.EqualFunc(x.Nodes, other.Nodes, VPNNode.equal)
}

func (x VPNNode) equal(other VPNNode) bool {
	return x.NodeID == other.NodeID && x.PublicKey == other.PublicKey &&
		x.ControlAddress == other.ControlAddress && x.ExpiresAt == other.ExpiresAt &&
		slices.Equal(x.WorkloadPrefixes, other.WorkloadPrefixes)
}

// CanonicalLength returns how many bytes the canonical form of the network has,
// which VPNNetworkLimit bounds.
func (x VPNNetwork) CanonicalLength() int {
	size := 128 + 96*len(x.Grants)
	for i := range x.Nodes {
		size += 192 + 64*len(x.Nodes[i].WorkloadPrefixes)
	}
	// AppendJSON differs from the canonical form in the order of members alone.
	return len(x.AppendJSON(make([]byte, 0, size)))
}

// AppendJSON appends the network in contract order.
func (x VPNNetwork) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("authorityId", x.AuthorityID)
	w.text("controlPrefix", x.ControlPrefix)
	w.integer("revision", x.Revision)
	writeList(&w, "nodes", x.Nodes)
	writeList(&w, "grants", x.Grants)
	return w.end()
}

// AppendJSON appends the node.
func (x VPNNode) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.text("publicKey", x.PublicKey)
	w.text("controlAddress", x.ControlAddress)
	w.integer("expiresAt", x.ExpiresAt)
	writeList(&w, "workloadPrefixes", x.WorkloadPrefixes)
	return w.end()
}

// AppendJSON appends the workload prefix.
func (x VPNWorkload) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("cidr", x.CIDR)
	w.text("policyDomain", x.PolicyDomain)
	return w.end()
}

// AppendJSON appends the grant.
func (x VPNGrant) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("sourceDomain", x.SourceDomain)
	w.text("destinationDomain", x.DestinationDomain)
	return w.end()
}
