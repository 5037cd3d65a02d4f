package contract

// protocolIncompatible is the frozen code of a protocol refusal.
const protocolIncompatible = "protocol-incompatible"

// ProtocolRefusal is IProtocolRefusal: one side refused the other's offer. It
// travels as the data of an error, with Describe as its text (contract §4). It
// ends no custody; the refused side offers again after
// RefusedOfferRetryInterval.
type ProtocolRefusal struct {
	Reason   Incompatibility // from the refusing side's point of view
	Refusing Offer           // the offer of the side that refused
	Refused  Offer           // the offer that was refused
}

// ReadProtocolRefusal reads the refusal in the data of an error. It reports
// false for anything but a whole one: exact keys, the frozen code, a known
// reason and two valid offers. What is no refusal is a plain failure.
func ReadProtocolRefusal(data []byte) (ProtocolRefusal, bool) {
	x, err := readAs[protocolRefusalBody]("protocol refusal", data, 0)
	return ProtocolRefusal{Incompatibility(x.reason), x.refusing, x.refused}, err == nil
}

// Describe returns one log line that opens with "protocol-incompatible" and
// names both sides. Offers hold release versions and nothing else, so the line
// quotes no free text of a peer.
func (x ProtocolRefusal) Describe() string {
	return protocolIncompatible + ": " + string(x.Reason) +
		": refusing side speaks " + x.Refusing.InterfacesVersion +
		" and accepts peers from " + x.Refusing.MinimumPeerVersion +
		", refused side speaks " + x.Refused.InterfacesVersion +
		" and accepts peers from " + x.Refused.MinimumPeerVersion
}

// Error returns Describe, so that a refused hop can be an error.
func (x ProtocolRefusal) Error() string { return x.Describe() }

// LogName is what a log says of the refusal (duty/field.Named).
func (x ProtocolRefusal) LogName() string { return protocolIncompatible }

// Text is the text of the error in which the refusal travels.
func (x ProtocolRefusal) Text() string { return x.Describe() }

// AppendData appends the data of the error in which the refusal travels.
func (x ProtocolRefusal) AppendData(dst []byte) []byte { return x.AppendJSON(dst) }

// AppendJSON appends the refusal in contract order.
func (x ProtocolRefusal) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("code", protocolIncompatible)
	w.text("reason", string(x.Reason))
	w.value("refusing", x.Refusing)
	w.value("refused", x.Refused)
	return w.end()
}

// protocolRefusalBody is a refusal as it came.
type protocolRefusalBody struct {
	code, reason      string
	refusing, refused Offer
}

func (x *protocolRefusalBody) shape() valueReader {
	return object(
		required("code", text(&x.code)),
		required("reason", text(&x.reason)),
		required("refusing", readOffer(&x.refusing)),
		required("refused", readOffer(&x.refused)),
	)
}

func (x protocolRefusalBody) Validate() []string { return reasonsOf(x.judge) }

func (x protocolRefusalBody) judge(v *verdict) {
	v.require(x.code == protocolIncompatible, "code", "is not protocol-incompatible")
	switch Incompatibility(x.reason) {
	case MajorMismatch, PeerBelowMinimum, SelfBelowPeerMinimum:
	default:
		v.addAt("reason", "is not a known incompatibility")
	}
	v.in("refusing", x.refusing)
	v.in("refused", x.refused)
}
