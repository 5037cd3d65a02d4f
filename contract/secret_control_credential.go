package contract

// ControlCredentialRequest is the request of getCorestoreControlCredentialMaterial:
// it names the recipient that the token is to be sealed to (contract §13). OWN
// member names (O13).
//
// Its counterpart publishCorestoreCredentialMaterial, which publishes the
// credentials of provisioned resources, has no reader here: the relay provisions
// nothing (contract O32).
type ControlCredentialRequest struct {
	RecipientKeyID string // canonical identifier
	Generation     int64  // counter: that recipient's
}

// ReadControlCredentialRequest reads the request body.
func ReadControlCredentialRequest(body []byte) (ControlCredentialRequest, error) {
	return readAs[ControlCredentialRequest](MethodGetControlCredential+" request", body, secretBearing)
}

func (x *ControlCredentialRequest) shape() valueReader {
	return object(
		required("recipientKeyId", text(&x.RecipientKeyID)),
		required("generation", integer(&x.Generation)),
	)
}

// Validate returns one named reason for each violation.
func (x ControlCredentialRequest) Validate() []string { return reasonsOf(x.judge) }

func (x ControlCredentialRequest) judge(v *verdict) {
	v.identifier("recipientKeyId", x.RecipientKeyID)
	v.counter("generation", x.Generation)
}

// AppendJSON appends the request body.
func (x ControlCredentialRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("recipientKeyId", x.RecipientKeyID)
	w.integer("generation", x.Generation)
	return w.end()
}

// ControlCredentialAnswer is the answer of getCorestoreControlCredentialMaterial:
// the control token, sealed. It is secret-bearing. OWN member name (O13).
type ControlCredentialAnswer struct {
	Envelope SealedEnvelope
}

// ReadControlCredentialAnswer reads the answer body.
func ReadControlCredentialAnswer(body []byte) (ControlCredentialAnswer, error) {
	return readAs[ControlCredentialAnswer](MethodGetControlCredential+" answer", body, secretBearing)
}

func (x *ControlCredentialAnswer) shape() valueReader {
	return answer(required("envelope", readSealedEnvelope(&x.Envelope)))
}

// Validate returns one named reason for each violation.
func (x ControlCredentialAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x ControlCredentialAnswer) judge(v *verdict) { v.in("envelope", x.Envelope) }

// ValidateFor judges the answer against its request: one named reason for
// material that is sealed to another key.
func (x ControlCredentialAnswer) ValidateFor(request ControlCredentialRequest) []string {
	return reasonsOf(func(v *verdict) {
		v.require(x.Envelope.RecipientKeyID == request.RecipientKeyID, "envelope.recipientKeyId",
			"is not the key that was named")
	})
}

// AppendJSON appends the answer body.
func (x ControlCredentialAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("envelope", x.Envelope)
	return w.end()
}
