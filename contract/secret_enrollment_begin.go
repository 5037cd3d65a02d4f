package contract

// BeginRecipientRequest is the request of beginSecretRecipientEnrollment, with
// which the relay names the key it made at its start (contract §13). OWN member
// names (O13).
type BeginRecipientRequest struct {
	ExpectedGeneration int64  // count: the generation that was read; compare-and-swap
	RecipientKeyID     string // canonical identifier
	PublicKey          string // canonical base64 of 32 bytes
}

// ReadBeginRecipientRequest reads the request body.
func ReadBeginRecipientRequest(body []byte) (BeginRecipientRequest, error) {
	return readAs[BeginRecipientRequest](MethodBeginSecretRecipient+" request", body, secretBearing)
}

func (x *BeginRecipientRequest) shape() valueReader {
	return object(
		required("expectedGeneration", integer(&x.ExpectedGeneration)),
		required("recipientKeyId", text(&x.RecipientKeyID)),
		required("publicKey", text(&x.PublicKey)),
	)
}

// Validate returns one named reason for each violation.
func (x BeginRecipientRequest) Validate() []string { return reasonsOf(x.judge) }

func (x BeginRecipientRequest) judge(v *verdict) {
	v.require(IsCount(x.ExpectedGeneration) && IsCounter(x.ExpectedGeneration+1), "expectedGeneration",
		"is not a count with a successor")
	v.identifier("recipientKeyId", x.RecipientKeyID)
	v.x25519Key("publicKey", x.PublicKey)
}

// AppendJSON appends the request body.
func (x BeginRecipientRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("expectedGeneration", x.ExpectedGeneration)
	w.text("recipientKeyId", x.RecipientKeyID)
	w.text("publicKey", x.PublicKey)
	return w.end()
}

// BeginRecipientAnswer is the answer of beginSecretRecipientEnrollment: a
// challenge sealed to the named key, which binds session, key, generation and
// expiry. It is secret-bearing. OWN member names (O13).
type BeginRecipientAnswer struct {
	Generation int64 // counter: the one that completing makes
	ExpiresAt  int64 // Unix milliseconds
	Envelope   SealedEnvelope
}

// ReadBeginRecipientAnswer reads the answer body.
func ReadBeginRecipientAnswer(body []byte) (BeginRecipientAnswer, error) {
	return readAs[BeginRecipientAnswer](MethodBeginSecretRecipient+" answer", body, secretBearing)
}

func (x *BeginRecipientAnswer) shape() valueReader {
	return answer(
		required("generation", integer(&x.Generation)),
		required("expiresAt", integer(&x.ExpiresAt)),
		required("envelope", readSealedEnvelope(&x.Envelope)),
	)
}

// Validate returns one named reason for each violation.
func (x BeginRecipientAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x BeginRecipientAnswer) judge(v *verdict) {
	v.counter("generation", x.Generation)
	v.unixMilliseconds("expiresAt", x.ExpiresAt)
	v.in("envelope", x.Envelope)
}

// ValidateFor judges the answer against its request: one named reason for a
// generation that does not follow the expected one, and for another key.
func (x BeginRecipientAnswer) ValidateFor(request BeginRecipientRequest) []string {
	return reasonsOf(func(v *verdict) {
		v.require(x.Generation == request.ExpectedGeneration+1, "generation", "does not follow the expected one")
		v.require(x.Envelope.RecipientKeyID == request.RecipientKeyID, "envelope.recipientKeyId",
			"is not the key that was named")
	})
}

// AppendJSON appends the answer body.
func (x BeginRecipientAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("generation", x.Generation)
	w.integer("expiresAt", x.ExpiresAt)
	w.value("envelope", x.Envelope)
	return w.end()
}
