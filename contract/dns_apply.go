package contract

// ApplyDNSLeaseRenewalRequest is the request of
// applyRuntimeNetworkDnsLeaseRenewal, which the relay sends from escrow under
// the session that the node itself obtained (contract §9.5).
type ApplyDNSLeaseRenewalRequest struct {
	Session Raw                   // the node's session, as it came
	Signed  SignedDNSLeaseRenewal // the record, as it came
}

// ReadApplyDNSLeaseRenewalRequest reads the request body. Whether the session
// is current is its receiver's to judge.
func ReadApplyDNSLeaseRenewalRequest(body []byte) (ApplyDNSLeaseRenewalRequest, error) {
	return readAs[ApplyDNSLeaseRenewalRequest](MethodApplyDNSLeaseRenewal+" request", body, 0)
}

func (x *ApplyDNSLeaseRenewalRequest) shape() valueReader {
	return object(
		required("session", rawObject(&x.Session)),
		required("signed", readSignedDNSLeaseRenewal(&x.Signed)),
	)
}

// Validate returns one named reason for each violation.
func (x ApplyDNSLeaseRenewalRequest) Validate() []string { return reasonsOf(x.judge) }

func (x ApplyDNSLeaseRenewalRequest) judge(v *verdict) {
	v.require(x.Session.IsObject(), "session", "is not an object")
	v.in("signed", x.Signed)
}

// AppendJSON appends the request body around the bytes that came.
func (x ApplyDNSLeaseRenewalRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("session", x.Session)
	w.value("signed", x.Signed)
	return w.end()
}

// ApplyDNSLeaseRenewalAnswer is the accepted answer of a delivery.
type ApplyDNSLeaseRenewalAnswer struct {
	Status  string // any text: the seeds list none (contract §9.5)
	Renewal DNSLeaseRenewalReference
}

// DNSLeaseRenewalReference is IRuntimeNetworkDnsLeaseRenewalReference.
type DNSLeaseRenewalReference struct {
	Projection Reference
	Sequence   int64 // counter
	Digest     string
}

// ReadApplyDNSLeaseRenewalAnswer reads an accepted answer.
func ReadApplyDNSLeaseRenewalAnswer(body []byte) (ApplyDNSLeaseRenewalAnswer, error) {
	return readAs[ApplyDNSLeaseRenewalAnswer](MethodApplyDNSLeaseRenewal+" answer", body, 0)
}

func (x *ApplyDNSLeaseRenewalAnswer) shape() valueReader {
	return answer(
		required("status", text(&x.Status)),
		required("renewal", readDNSLeaseRenewalReference(&x.Renewal)),
	)
}

func readDNSLeaseRenewalReference(x *DNSLeaseRenewalReference) valueReader {
	return answer(
		required("projection", readReference(&x.Projection)),
		required("sequence", integer(&x.Sequence)),
		required("digest", text(&x.Digest)),
	)
}

// Validate returns one named reason for each violation.
func (x ApplyDNSLeaseRenewalAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x ApplyDNSLeaseRenewalAnswer) judge(v *verdict) { v.in("renewal", x.Renewal) }

func (x DNSLeaseRenewalReference) judge(v *verdict) {
	v.in("projection", x.Projection)
	v.counter("sequence", x.Sequence)
	v.digest("digest", x.Digest)
}

// Answers reports whether the answer acknowledges exactly the renewal that was
// sent (contract §9.5). It says that the node admitted it durably and no more.
func (x ApplyDNSLeaseRenewalAnswer) Answers(sent DNSLeaseRenewal) bool {
	return x.Renewal == sent.Reference()
}

// AppendJSON appends the answer body.
func (x ApplyDNSLeaseRenewalAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("status", x.Status)
	w.value("renewal", x.Renewal)
	return w.end()
}

// AppendJSON appends the reference.
func (x DNSLeaseRenewalReference) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("projection", x.Projection)
	w.integer("sequence", x.Sequence)
	w.text("digest", x.Digest)
	return w.end()
}
