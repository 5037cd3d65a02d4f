package contract

// RelayRegistrationAnswer is the accepted answer of registerClusterRelay
// (contract §5.3, O35).
type RelayRegistrationAnswer struct {
	Origin   string // the origin that Cloudly published, equal to ClusterRelay.Origin
	Protocol Offer  // Cloudly's own offer
	// Credential is the generation that the socket authenticated as, and
	// AcceptedRegistration the record that the acceptance wrote. Both are public.
	Credential           Reference
	AcceptedRegistration Reference
}

const relayRegistrationAnswer = "registerClusterRelay answer"

// ReadRelayRegistrationAnswer reads an accepted answer and ignores members it
// does not know. The relay negotiates the offer first, see JudgeAnsweredOffer.
func ReadRelayRegistrationAnswer(body []byte) (RelayRegistrationAnswer, error) {
	return readAs[RelayRegistrationAnswer](relayRegistrationAnswer, body, 0)
}

// ReadStrictRelayRegistrationAnswer reads an accepted answer with exact keys;
// only a member "accepted" that is true may stand beside the four.
func ReadStrictRelayRegistrationAnswer(body []byte) (RelayRegistrationAnswer, error) {
	return readAs[RelayRegistrationAnswer](relayRegistrationAnswer, body, strictAnswer)
}

func (x *RelayRegistrationAnswer) shape() valueReader {
	return answer(
		required("origin", text(&x.Origin)),
		required("protocol", readOffer(&x.Protocol)),
		required("credential", readReference(&x.Credential)),
		required("acceptedRegistration", readReference(&x.AcceptedRegistration)),
		optional("accepted", onlyTrue),
	)
}

// Validate returns one named reason for each violation.
func (x RelayRegistrationAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x RelayRegistrationAnswer) judge(v *verdict) {
	v.relayOrigin("origin", x.Origin)
	v.in("protocol", x.Protocol)
	v.in("credential", x.Credential)
	v.in("acceptedRegistration", x.AcceptedRegistration)
}

// AppendJSON appends the answer body.
func (x RelayRegistrationAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("origin", x.Origin)
	w.value("protocol", x.Protocol)
	w.value("credential", x.Credential)
	w.value("acceptedRegistration", x.AcceptedRegistration)
	return w.end()
}

// onlyTrue reads a member that may only say yes: an accepted answer that says
// no contradicts itself.
func onlyTrue(r *reader) {
	if token, ok := r.next(); ok && string(token) != "true" {
		r.add("is not true")
	}
}
