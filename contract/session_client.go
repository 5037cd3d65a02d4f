package contract

// ClientSessionRequest is the request of registerCloudlyClientSession, which
// puts the JWT on one physical socket (contract §5.2). The whole request is
// secret.
type ClientSessionRequest struct {
	Identity IdentityCredential
	Protocol Offer // the relay's own offer, judged by Cloudly before the JWT
}

// ReadClientSessionRequest reads the request body. A server reads and
// negotiates the offer first, see ReadOffer.
func ReadClientSessionRequest(body []byte) (ClientSessionRequest, error) {
	return readAs[ClientSessionRequest]("registerCloudlyClientSession request", body, secretBearing)
}

func (x *ClientSessionRequest) shape() valueReader {
	return object(
		required("identity", readIdentityCredential(&x.Identity)),
		required("protocol", readOffer(&x.Protocol)),
	)
}

// Validate returns one named reason for each violation.
func (x ClientSessionRequest) Validate() []string { return reasonsOf(x.judge) }

func (x ClientSessionRequest) judge(v *verdict) {
	v.in("identity", x.Identity)
	v.in("protocol", x.Protocol)
}

// AppendJSON appends the request body.
func (x ClientSessionRequest) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("identity", x.Identity)
	w.value("protocol", x.Protocol)
	return w.end()
}

// ClientSessionAnswer is the accepted answer of registerCloudlyClientSession:
// Cloudly's own offer. What else it carries is not spelled and is ignored
// (contract §5.2).
type ClientSessionAnswer struct {
	Protocol Offer
}

// ReadClientSessionAnswer reads an accepted answer. The relay negotiates the
// offer first, see JudgeAnsweredOffer.
func ReadClientSessionAnswer(body []byte) (ClientSessionAnswer, error) {
	return readAs[ClientSessionAnswer]("registerCloudlyClientSession answer", body, secretBearing)
}

func (x *ClientSessionAnswer) shape() valueReader {
	return answer(required("protocol", readOffer(&x.Protocol)))
}

// Validate returns one named reason for each violation.
func (x ClientSessionAnswer) Validate() []string { return reasonsOf(x.judge) }

func (x ClientSessionAnswer) judge(v *verdict) { v.in("protocol", x.Protocol) }

// AppendJSON appends the answer body.
func (x ClientSessionAnswer) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.value("protocol", x.Protocol)
	return w.end()
}
