package contract

// HoldDNSLeaseRenewalsRequest is the request of
// holdRuntimeNetworkDnsLeaseRenewals: the whole run of renewals that the relay
// is to hold for one node, in ascending order (contract §9.1).
type HoldDNSLeaseRenewalsRequest struct {
	NodeID     string // node id
	Projection Reference
	Renewals   []SignedDNSLeaseRenewal // at most MaximumEscrowedRenewals; empty holds nothing
}

// ReadHoldDNSLeaseRenewalsRequest reads the request body and judges it by
// Validate, which is all that escrow-run-invalid stands for; the order of the
// run is not judged. AdmitHoldDNSLeaseRenewalsRequest judges both.
func ReadHoldDNSLeaseRenewalsRequest(body []byte) (HoldDNSLeaseRenewalsRequest, error) {
	const what = MethodHoldDNSLeaseRenewals + " request"
	if !isCaptured(body) {
		return HoldDNSLeaseRenewalsRequest{}, &InvalidError{What: what, Reasons: []string{"body: has more than 1048576 bytes of canonical json"}}
	}
	return readAs[HoldDNSLeaseRenewalsRequest](what, body, 0)
}

// isCaptured reports whether a runtime-network value is within
// CapturedValueLimit (contract §2.3). A canonical form is never longer than the
// value, and at least a sixth of it in what is not whitespace; so only values
// between are measured.
func isCaptured(body []byte) bool {
	if len(body) <= CapturedValueLimit {
		return true
	}
	if len(body) > 6*CapturedValueLimit {
		return false
	}
	n, err := CanonicalLength(body)
	return err == nil && n <= CapturedValueLimit
}

// AdmitHoldDNSLeaseRenewalsRequest reads the request body and judges all that
// can be judged of it alone, in the order of contract §9.3. A refusal is
// escrow-run-invalid or escrow-run-unordered; its reason names the first
// violation. With the latter the node is returned too, since its name is right.
func AdmitHoldDNSLeaseRenewalsRequest(body []byte) (HoldDNSLeaseRenewalsRequest, *Refusal) {
	x, err := ReadHoldDNSLeaseRenewalsRequest(body)
	if err != nil {
		return x, &Refusal{EscrowRunInvalid, err.Error()}
	}
	if reasons := x.ValidateOrder(); len(reasons) > 0 {
		err := &InvalidError{What: "order of renewals", Reasons: reasons}
		return HoldDNSLeaseRenewalsRequest{NodeID: x.NodeID}, &Refusal{EscrowRunUnordered, err.Error()}
	}
	return x, nil
}

func (x *HoldDNSLeaseRenewalsRequest) shape() valueReader {
	return object(
		required("nodeId", text(&x.NodeID)),
		required("projection", readReference(&x.Projection)),
		required("renewals", list(&x.Renewals, MaximumEscrowedRenewals+1, readSignedDNSLeaseRenewal)),
	)
}

// AppendJSON appends the request body; renewals that were read keep their bytes.
func (x HoldDNSLeaseRenewalsRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("nodeId", x.NodeID)
	w.value("projection", x.Projection)
	writeList(&w, "renewals", x.Renewals)
	return w.end()
}

// HoldDNSLeaseRenewalsAnswer is the accepted answer of a hold.
type HoldDNSLeaseRenewalsAnswer struct {
	Held int64 // count; the number of renewals that were sent
}

// ReadHoldDNSLeaseRenewalsAnswer reads an accepted answer.
func ReadHoldDNSLeaseRenewalsAnswer(body []byte) (HoldDNSLeaseRenewalsAnswer, error) {
	return readAs[HoldDNSLeaseRenewalsAnswer](MethodHoldDNSLeaseRenewals+" answer", body, 0)
}

func (x *HoldDNSLeaseRenewalsAnswer) shape() valueReader {
	return answer(required("held", integer(&x.Held)))
}

// Validate returns one named reason for each violation.
func (x HoldDNSLeaseRenewalsAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x HoldDNSLeaseRenewalsAnswer) judge(v *verdict) { v.count("held", x.Held) }

// Answers reports whether the answer is one to this request: it says that
// exactly the renewals sent are held (contract §9.3).
func (x HoldDNSLeaseRenewalsAnswer) Answers(sent HoldDNSLeaseRenewalsRequest) bool {
	return x.Held == int64(len(sent.Renewals))
}

// AppendJSON appends the answer body.
func (x HoldDNSLeaseRenewalsAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("held", x.Held)
	return w.end()
}
