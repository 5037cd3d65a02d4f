package contract

// maximumRecipients bounds the recipients of one cluster. OWN: each start of a
// relay enrolls one and retires the one before it, and nothing says that
// Cloudly forgets those that have retired; so it is years of daily starts.
const maximumRecipients = 4096

// SecretRecipientState is the answer of getSecretRecipientEnrollmentState, which
// is asked with an empty body, and of completeSecretRecipientEnrollment: either
// the empty state of generation zero, or the complete set of the cluster's
// recipients (contract §13). OWN: the seeds say that and name no members (O13).
type SecretRecipientState struct {
	Generation int64             // count; zero exactly when nothing was ever enrolled
	Recipients []SecretRecipient // of rising generation; the last is the active one
}

// SecretRecipient is one X25519 key that secrets are or were sealed to.
type SecretRecipient struct {
	RecipientKeyID string // canonical identifier
	PublicKey      string // canonical base64 of 32 bytes
	Generation     int64  // counter
	State          RecipientState
}

// RecipientState says whether anything is still sealed to a recipient.
type RecipientState string

// The states of a recipient.
const (
	RecipientActive   RecipientState = "active"
	RecipientRetiring RecipientState = "retiring"
)

// ReadSecretRecipientState reads the answer body of the named method.
func ReadSecretRecipientState(method string, body []byte) (SecretRecipientState, error) {
	return readAs[SecretRecipientState](method+" answer", body, secretBearing)
}

func (x *SecretRecipientState) shape() valueReader {
	return answer(
		required("generation", integer(&x.Generation)),
		required("recipients", list(&x.Recipients, maximumRecipients+1, readSecretRecipient)),
	)
}

func readSecretRecipient(x *SecretRecipient) valueReader {
	return object(
		required("recipientKeyId", text(&x.RecipientKeyID)),
		required("publicKey", text(&x.PublicKey)),
		required("generation", integer(&x.Generation)),
		required("state", text((*string)(&x.State))),
	)
}

// Active returns the recipient that secrets are sealed to now, and false at
// generation zero.
func (x SecretRecipientState) Active() (SecretRecipient, bool) {
	if len(x.Recipients) == 0 {
		return SecretRecipient{}, false
	}
	return x.Recipients[len(x.Recipients)-1], true
}

// Validate returns one named reason for each violation.
func (x SecretRecipientState) Validate() []string { return reasonsOf(x.judge) }

func (x SecretRecipientState) judge(v *verdict) {
	v.count("generation", x.Generation)
	v.require(len(x.Recipients) <= maximumRecipients, "recipients", "has more than 4096 recipients")
	switch {
	case x.Generation == 0:
		v.require(len(x.Recipients) == 0, "recipients", "is not empty at generation zero")
	case len(x.Recipients) == 0:
		v.addAt("recipients", "is empty after generation zero")
	}
	keyIDs := make(map[string]bool)
	previous := int64(0)
	v.enter("recipients")
	for i, recipient := range x.Recipients {
		v.enterIndex(i)
		recipient.judge(v)
		v.require(recipient.Generation > previous, "generation", "is not after the one before it")
		v.require(!keyIDs[recipient.RecipientKeyID], "recipientKeyId", "repeats an earlier recipient")
		isLast := i == len(x.Recipients)-1
		v.require(isLast == (recipient.State == RecipientActive), "state", "is not active of the last recipient alone")
		v.require(!isLast || recipient.Generation == x.Generation, "generation", "is not that of the state")
		v.leave()
		keyIDs[recipient.RecipientKeyID] = true
		previous = recipient.Generation
	}
	v.leave()
}

func (x SecretRecipient) judge(v *verdict) {
	v.identifier("recipientKeyId", x.RecipientKeyID)
	v.x25519Key("publicKey", x.PublicKey)
	v.counter("generation", x.Generation)
	v.require(x.State == RecipientActive || x.State == RecipientRetiring, "state", "is not a known state")
}

// AppendJSON appends the answer body.
func (x SecretRecipientState) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.integer("generation", x.Generation)
	writeList(&w, "recipients", x.Recipients)
	return w.end()
}

// AppendJSON appends the recipient.
func (x SecretRecipient) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("recipientKeyId", x.RecipientKeyID)
	w.text("publicKey", x.PublicKey)
	w.integer("generation", x.Generation)
	w.text("state", string(x.State))
	return w.end()
}
