package contract

// ApplyVPNNetworkRequest is the request of applyClusterVpnNetwork (contract
// §10.4).
type ApplyVPNNetworkRequest struct {
	Network VPNNetwork
}

// ReadApplyVPNNetworkRequest reads the request body.
func ReadApplyVPNNetworkRequest(body []byte) (ApplyVPNNetworkRequest, error) {
	return readAs[ApplyVPNNetworkRequest](MethodApplyVPNNetwork+" request", body, 0)
}

func (x *ApplyVPNNetworkRequest) shape() valueReader {
	return object(required("network", readVPNNetwork(&x.Network)))
}

// Validate returns one named reason for each violation.
func (x ApplyVPNNetworkRequest) Validate() []string { return reasonsOf(x.judge) }

func (x ApplyVPNNetworkRequest) judge(v *verdict) { v.in("network", x.Network) }

// AppendJSON appends the request body.
func (x ApplyVPNNetworkRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("network", x.Network)
	return w.end()
}

// VPNNetworkState is how far a hub is with the network that it admitted.
type VPNNetworkState string

// The states of contract §10.4.
const (
	VPNNetworkIdle     VPNNetworkState = "idle"     // the pushed revision is the applied one
	VPNNetworkApplying VPNNetworkState = "applying" // admitted, not effective yet
	VPNNetworkFailed   VPNNetworkState = "failed"   // not taken over; the one before stays in force
)

// ApplyVPNNetworkAnswer is the accepted answer of applyClusterVpnNetwork.
type ApplyVPNNetworkAnswer struct {
	AppliedRevision int64 // the revision last applied in full, 0 when none (contract O22c)
	State           VPNNetworkState
}

// ReadApplyVPNNetworkAnswer reads an accepted answer.
func ReadApplyVPNNetworkAnswer(body []byte) (ApplyVPNNetworkAnswer, error) {
	return readAs[ApplyVPNNetworkAnswer](MethodApplyVPNNetwork+" answer", body, 0)
}

func (x *ApplyVPNNetworkAnswer) shape() valueReader {
	return answer(
		required("appliedRevision", integer(&x.AppliedRevision)),
		required("state", text((*string)(&x.State))),
	)
}

// Validate returns one named reason for each violation.
func (x ApplyVPNNetworkAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x ApplyVPNNetworkAnswer) judge(v *verdict) {
	v.count("appliedRevision", x.AppliedRevision)
	switch x.State {
	case VPNNetworkIdle, VPNNetworkApplying, VPNNetworkFailed:
	default:
		v.addAt("state", "is not idle, applying or failed")
	}
}

// Answers reports whether the answer can be one to this request: a hub that is
// idle has applied the very revision that was pushed.
func (x ApplyVPNNetworkAnswer) Answers(sent ApplyVPNNetworkRequest) bool {
	return x.State != VPNNetworkIdle || x.AppliedRevision == sent.Network.Revision
}

// AppendJSON appends the answer body.
func (x ApplyVPNNetworkAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("appliedRevision", x.AppliedRevision)
	w.text("state", string(x.State))
	return w.end()
}
