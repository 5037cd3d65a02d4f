package contract

// IdentityExchangeRequest is the request that turns the relay's bearer into a
// JWT, by default getIdentityByToken. OWN: the seeds mention the exchange and
// name neither method nor members (contract O4). The whole request is secret.
type IdentityExchangeRequest struct {
	Token Secret // relay authorization, see IsRelayBearer
}

// ReadIdentityExchangeRequest reads the request body.
func ReadIdentityExchangeRequest(body []byte) (IdentityExchangeRequest, error) {
	return readAs[IdentityExchangeRequest]("identity exchange request", body, secretBearing)
}

func (x *IdentityExchangeRequest) shape() valueReader {
	return object(required("token", secretText(&x.Token)))
}

// Validate returns one named reason for each violation.
func (x IdentityExchangeRequest) Validate() []string { return reasonsOf(x.judge) }

func (x IdentityExchangeRequest) judge(v *verdict) {
	v.require(IsRelayBearer(string(x.Token)), "token", "is not a relay authorization")
}

// AppendJSON appends the request body.
func (x IdentityExchangeRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.secret("token", x.Token)
	return w.end()
}

// IdentityExchangeAnswer is the accepted answer of the exchange: the full
// IIdentity, of which the relay reads the JWT and when it ends. Everything else
// in it is Cloudly's own and may grow (contract O4).
type IdentityExchangeAnswer struct {
	Identity Identity
}

// Zero overwrites the JWT.
func (x IdentityExchangeAnswer) Zero() { x.Identity.JWT.Zero() }

// Identity is what the relay reads of IIdentity.
type Identity struct {
	JWT Secret // as in IdentityCredential
	// ExpiresAt is when the JWT ends in Unix milliseconds, nil when the answer
	// does not say so in that form. The seeds do not spell the member, so a
	// release that writes another form must not lock the relay out.
	ExpiresAt *int64
}

// ReadIdentityExchangeAnswer reads an accepted answer. The whole answer is
// secret.
func ReadIdentityExchangeAnswer(body []byte) (IdentityExchangeAnswer, error) {
	return readAs[IdentityExchangeAnswer]("identity exchange answer", body, secretBearing)
}

func (x *IdentityExchangeAnswer) shape() valueReader {
	return answer(required("identity", readIdentity(&x.Identity)))
}

func readIdentity(x *Identity) valueReader {
	return answer(
		required("jwt", secretText(&x.JWT)),
		optional("expiresAt", timeIfStated(&x.ExpiresAt)),
	)
}

// Validate returns one named reason for each violation.
func (x IdentityExchangeAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x IdentityExchangeAnswer) judge(v *verdict) { v.in("identity", x.Identity) }

func (x Identity) judge(v *verdict) {
	v.jwt("jwt", x.JWT)
	if x.ExpiresAt != nil {
		v.unixMilliseconds("expiresAt", *x.ExpiresAt)
	}
}

// AppendJSON appends the answer body.
func (x IdentityExchangeAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("identity", x.Identity)
	return w.end()
}

// AppendJSON appends the members that are read, the JWT first.
func (x Identity) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.secret("jwt", x.JWT)
	if x.ExpiresAt != nil {
		w.integer("expiresAt", *x.ExpiresAt)
	}
	return w.end()
}

// earliestStated is the first time that is taken for one in Unix milliseconds:
// March 1973. A smaller number is one in seconds, or none.
const earliestStated = 100_000_000_000

// timeIfStated reads a time in Unix milliseconds and takes anything else as not
// stated.
func timeIfStated(dst **int64) valueReader {
	return func(r *reader) {
		token, ok := r.next()
		if !ok {
			return
		}
		if n, ok := parseSafeInteger(token); ok && IsUnixMilliseconds(n) && n >= earliestStated {
			*dst = &n
		}
	}
}
