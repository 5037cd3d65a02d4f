package contract

// IngressAccepted is the accepted answer of registerClusterIngress: exactly
// { accepted: true, revision | null, protocol } (contract §11.2). The relay
// reads Cloudly's and writes its own, with the same revision and the relay's
// offer (contract O16).
type IngressAccepted struct {
	Revision *int64 // counter; nil, null on the wire, when there is no table yet
	Protocol Offer  // of the side that accepted
}

// ReadIngressAccepted reads Cloudly's accepted answer. Members of a later minor
// are ignored, as in other accepted answers (contract O35): the answer that an
// ingress gets is written anew. It is an error that accepted is anything but
// true.
func ReadIngressAccepted(body []byte) (IngressAccepted, error) {
	x, err := readAs[ingressAcceptedBody](MethodRegisterIngress+" answer", body, 0)
	return x.IngressAccepted, err
}

// ingressAcceptedBody is the answer as it came.
type ingressAcceptedBody struct {
	accepted bool
	IngressAccepted
}

func (x *ingressAcceptedBody) shape() valueReader {
	return answer(
		required("accepted", boolean(&x.accepted)),
		required("revision", nullable(&x.Revision, integer)),
		required("protocol", readOffer(&x.Protocol)),
	)
}

func (x ingressAcceptedBody) Validate() []string { return reasonsOf(x.judge) }

func (x ingressAcceptedBody) judge(v *verdict) {
	v.require(x.accepted, "accepted", "is not true")
	x.IngressAccepted.judge(v)
}

// Validate returns one named reason for each violation.
func (x IngressAccepted) Validate() []string { return reasonsOf(x.judge) }

func (x IngressAccepted) judge(v *verdict) {
	if x.Revision != nil {
		v.counter("revision", *x.Revision)
	}
	v.in("protocol", x.Protocol)
}

// AppendJSON appends the answer body in contract order.
func (x IngressAccepted) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.boolean("accepted", true)
	if x.Revision == nil {
		w.null("revision")
	} else {
		w.integer("revision", *x.Revision)
	}
	w.value("protocol", x.Protocol)
	return w.end()
}
