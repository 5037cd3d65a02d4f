package contract

// maximumIngressVersion bounds the version an ingress states. OWN: the seeds
// give an example and no grammar, so the relay only keeps it printable and
// leaves the judgement to Cloudly, which reads the same body.
const maximumIngressVersion = 128

// IngressRegistration is the request of registerClusterIngress as the relay
// reads it on the first hop (contract §11.2). It is shape only: whether the
// bearer, the designation and the node are right is Cloudly's to judge, to whom
// the body goes on as the bytes that came. The offer is read before all of it,
// by ReadOffer, and negotiated first.
//
// It is secret-bearing. Its holder wipes the bearer with Zero as soon as the
// request has been judged.
type IngressRegistration struct {
	Bearer       Secret
	Version      string // of the ingress, not of the vocabulary
	NodeID       string
	Capabilities Raw // nil when absent; of unstated inner shape
	Protocol     Offer
}

// ReadIngressRegistration reads the request body. No reason quotes a value or
// an unknown member's name.
func ReadIngressRegistration(body []byte) (IngressRegistration, error) {
	return readAs[IngressRegistration](MethodRegisterIngress+" request", body, secretBearing)
}

func (x *IngressRegistration) shape() valueReader {
	return object(
		required("bearer", secretText(&x.Bearer)),
		required("version", text(&x.Version)),
		required("nodeId", text(&x.NodeID)),
		optional("capabilities", plain(&x.Capabilities)),
		required("protocol", readOffer(&x.Protocol)),
	)
}

// Zero overwrites the bearer.
func (x IngressRegistration) Zero() { x.Bearer.Zero() }

// Validate returns one named reason for each violation.
func (x IngressRegistration) Validate() []string { return reasonsOf(x.judge) }

func (x IngressRegistration) judge(v *verdict) {
	v.require(len(x.Bearer) > 0, "bearer", "is empty")
	v.require(isPlainText(x.Version, maximumIngressVersion), "version",
		"is not 1 to 128 printable characters")
	v.nodeID("nodeId", x.NodeID)
	v.in("protocol", x.Protocol)
}

// AppendJSON appends the request body in contract order.
func (x IngressRegistration) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.secret("bearer", x.Bearer)
	w.text("version", x.Version)
	w.text("nodeId", x.NodeID)
	w.optional("capabilities", x.Capabilities)
	w.value("protocol", x.Protocol)
	return w.end()
}
