package contract

// challengeBytes is the length of a challenge. OWN: as long as the key it proves.
const challengeBytes = 32

// CompleteRecipientRequest is the request of completeSecretRecipientEnrollment:
// the opened challenge proves that the relay holds the private key (contract
// §13). It is answered with a SecretRecipientState, in which the recipient is
// the active one, and is secret-bearing. OWN member names (O13).
type CompleteRecipientRequest struct {
	RecipientKeyID string // canonical identifier
	Generation     int64  // counter, as begin answered it
	Challenge      Secret // canonical base64 of the 32 bytes that were sealed
}

// ReadCompleteRecipientRequest reads the request body.
func ReadCompleteRecipientRequest(body []byte) (CompleteRecipientRequest, error) {
	return readAs[CompleteRecipientRequest](MethodCompleteSecretRecipient+" request", body, secretBearing)
}

func (x *CompleteRecipientRequest) shape() valueReader {
	return object(
		required("recipientKeyId", text(&x.RecipientKeyID)),
		required("generation", integer(&x.Generation)),
		required("challenge", secretText(&x.Challenge)),
	)
}

// Validate returns one named reason for each violation.
func (x CompleteRecipientRequest) Validate() []string { return reasonsOf(x.judge) }

func (x CompleteRecipientRequest) judge(v *verdict) {
	v.identifier("recipientKeyId", x.RecipientKeyID)
	v.counter("generation", x.Generation)
	v.require(isBase64(x.Challenge, challengeBytes, challengeBytes), "challenge",
		"is not canonical base64 of 32 bytes")
}

// AppendJSON appends the request body.
func (x CompleteRecipientRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("recipientKeyId", x.RecipientKeyID)
	w.integer("generation", x.Generation)
	w.secret("challenge", x.Challenge)
	return w.end()
}
