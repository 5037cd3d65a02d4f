package contract

// Scope returns the scope that all renewals of a valid run share. False means
// that the run is empty.
func (x HoldDNSLeaseRenewalsRequest) Scope() (NodeScope, bool) {
	if len(x.Renewals) == 0 {
		return NodeScope{}, false
	}
	return x.Renewals[0].Renewal.Scope(), true
}

// Validate returns one named reason for each violation that makes a run
// invalid: everything of contract §9.2 except the order. Signatures are never
// verified.
func (x HoldDNSLeaseRenewalsRequest) Validate() []string { return reasonsOf(x.judge) }

func (x HoldDNSLeaseRenewalsRequest) judge(v *verdict) {
	v.nodeID("nodeId", x.NodeID)
	v.in("projection", x.Projection)
	v.require(len(x.Renewals) <= MaximumEscrowedRenewals, "renewals", "has more than 32 renewals")
	inEach(v, "renewals", x.Renewals)
	if len(x.Renewals) == 0 {
		return
	}
	x.judgeUnity(v)
	first, last := x.Renewals[0].Renewal.DNS, x.Renewals[len(x.Renewals)-1].Renewal.DNS
	v.require(last.ExpiresAt-first.IssuedAt <= MaximumEscrowHorizon.Milliseconds(),
		"renewals", "reaches more than 14400000 ms from the first issuedAt to the last expiresAt")
}

// judgeUnity judges that the run has one node, one projection, one scope and
// one signing-authority revision.
func (x HoldDNSLeaseRenewalsRequest) judgeUnity(v *verdict) {
	first := x.Renewals[0]
	authority, controller := original{raw: first.Authority}, original{raw: first.Renewal.Controller}
	v.enter("renewals")
	for i, signed := range x.Renewals {
		r := signed.Renewal
		v.enterIndex(i)
		v.require(authority.same(signed.Authority), "authority", "is not that of the first renewal")
		v.enter("renewal")
		v.require(controller.same(r.Controller), "controller", "is not that of the first renewal")
		v.require(r.NodeID == x.NodeID, "nodeId", "is not the node of the run")
		v.require(r.RuntimeNamespace == first.Renewal.RuntimeNamespace, "runtimeNamespace", "is not that of the first renewal")
		v.require(r.Projection == x.Projection, "projection", "is not the projection of the run")
		v.leave()
		v.leave()
	}
	v.leave()
}

// original is the opaque value of the first renewal, which all others repeat.
// Bytes are compared first, and its canonical form is made once at most: a run
// in which every renewal differs must not cost the first one many times over.
type original struct {
	raw       Raw
	canonical []byte
	made      bool
}

// same reports whether another value has the same content. That a value has a
// canonical form at all is judged where it stands.
func (o *original) same(other Raw) bool {
	if string(o.raw) == string(other) {
		return true
	}
	if outlineOf(o.raw) != outlineOf(other) {
		return false
	}
	if !o.made {
		o.canonical, _ = Canonical(o.raw)
		o.made = true
	}
	canonical, err := Canonical(other)
	return err == nil && o.canonical != nil && string(o.canonical) == string(canonical)
}

// ValidateOrder returns one named reason for each renewal of a valid run that
// does not follow the one before it: sequences ascend, and each window extends
// the last. Gaps are allowed in both (contract §9.2).
func (x HoldDNSLeaseRenewalsRequest) ValidateOrder() []string { return reasonsOf(x.judgeOrder) }

func (x HoldDNSLeaseRenewalsRequest) judgeOrder(v *verdict) {
	v.enter("renewals")
	for i := 1; i < len(x.Renewals); i++ {
		before, r := x.Renewals[i-1].Renewal, x.Renewals[i].Renewal
		v.enterIndex(i)
		v.enter("renewal")
		v.require(before.Sequence < r.Sequence, "sequence", "is not higher than the one before")
		v.enter("dns")
		v.require(before.DNS.IssuedAt <= r.DNS.IssuedAt, "issuedAt", "is earlier than the one before")
		v.require(before.DNS.ExpiresAt < r.DNS.ExpiresAt, "expiresAt", "is not later than the one before")
		v.leave()
		v.leave()
		v.leave()
	}
	v.leave()
}
