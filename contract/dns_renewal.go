package contract

// DNSLeaseRenewal is IRuntimeNetworkDnsLeaseRenewal: it extends the DNS window
// of one projection on one node and grants nothing else (contract §9.1).
type DNSLeaseRenewal struct {
	Controller       Raw    // an object, opaque; compared by canonical content
	NodeID           string // node id
	RuntimeNamespace string // canonical identifier
	Projection       Reference
	Sequence         int64 // counter
	DNS              DNSWindow
	Digest           string // over every other member, see ComputeDigest
}

// DNSWindow is the window of a renewal in Unix milliseconds. IssuedAt is the
// start of its slot, not the moment of signing.
type DNSWindow struct {
	IssuedAt  int64
	NotBefore int64 // not before IssuedAt
	ExpiresAt int64 // after NotBefore, at most MaximumDNSLease after IssuedAt
}

// Scope returns the node scope of the renewal.
func (x DNSLeaseRenewal) Scope() NodeScope {
	return NodeScope{x.Controller, x.NodeID, x.RuntimeNamespace}
}

// Reference returns what an answer to the renewal's delivery repeats.
func (x DNSLeaseRenewal) Reference() DNSLeaseRenewalReference {
	return DNSLeaseRenewalReference{x.Projection, x.Sequence, x.Digest}
}

// ComputeDigest returns the digest that the renewal's members have. A digest
// authenticates nothing (contract §9.2).
func (x DNSLeaseRenewal) ComputeDigest() (string, error) {
	return Digest(DNSLeaseRenewalDigest, x.AppendJSON(nil))
}

func readDNSLeaseRenewal(x *DNSLeaseRenewal) valueReader { return x.shape() }

func (x *DNSLeaseRenewal) shape() valueReader {
	return object(
		required("controller", rawObject(&x.Controller)),
		required("nodeId", text(&x.NodeID)),
		required("runtimeNamespace", text(&x.RuntimeNamespace)),
		required("projection", readReference(&x.Projection)),
		required("sequence", integer(&x.Sequence)),
		required("dns", readDNSWindow(&x.DNS)),
		required("digest", text(&x.Digest)),
	)
}

func readDNSWindow(x *DNSWindow) valueReader {
	return object(
		required("issuedAt", integer(&x.IssuedAt)),
		required("notBefore", integer(&x.NotBefore)),
		required("expiresAt", integer(&x.ExpiresAt)),
	)
}

// Validate returns one named reason for each violation.
func (x DNSLeaseRenewal) Validate() []string { return reasonsOf(x.judge) }

func (x DNSLeaseRenewal) judge(v *verdict) {
	v.canonical("controller", x.Controller)
	v.nodeID("nodeId", x.NodeID)
	v.identifier("runtimeNamespace", x.RuntimeNamespace)
	v.in("projection", x.Projection)
	v.counter("sequence", x.Sequence)
	v.in("dns", x.DNS)
	v.digest("digest", x.Digest)
	if !IsDigest(x.Digest) {
		return
	}
	// Without a canonical form there is no digest; that reason stands above.
	if digest, err := x.ComputeDigest(); err == nil {
		v.require(digest == x.Digest, "digest", "is not the digest of the renewal")
	}
}

func (x DNSWindow) judge(v *verdict) {
	v.unixMilliseconds("issuedAt", x.IssuedAt)
	v.unixMilliseconds("notBefore", x.NotBefore)
	v.unixMilliseconds("expiresAt", x.ExpiresAt)
	v.require(x.IssuedAt <= x.NotBefore, "notBefore", "is before issuedAt")
	v.require(x.NotBefore < x.ExpiresAt, "expiresAt", "is not after notBefore")
	v.require(x.ExpiresAt-x.IssuedAt <= MaximumDNSLease.Milliseconds(), "expiresAt", "is more than 900000 ms after issuedAt")
}

// canonical judges an opaque member that is compared or hashed by content.
func (v *verdict) canonical(member string, x Raw) {
	_, err := Canonical(x)
	v.require(err == nil, member, "has no canonical form")
}

// AppendJSON appends the renewal in contract order.
func (x DNSLeaseRenewal) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("controller", x.Controller)
	w.text("nodeId", x.NodeID)
	w.text("runtimeNamespace", x.RuntimeNamespace)
	w.value("projection", x.Projection)
	w.integer("sequence", x.Sequence)
	w.value("dns", x.DNS)
	w.text("digest", x.Digest)
	return w.end()
}

// AppendJSON appends the window.
func (x DNSWindow) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("issuedAt", x.IssuedAt)
	w.integer("notBefore", x.NotBefore)
	w.integer("expiresAt", x.ExpiresAt)
	return w.end()
}
