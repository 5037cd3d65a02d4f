package cloudly

// trouble names why there is no session, in an operator's words. It is the reason
// of the readiness check, of events, and a label of a metric.
type trouble uint8

const (
	credentialUnusable trouble = iota
	dialFailed
	upgradeRefused
	exchangeRefused
	exchangeUnanswered
	sessionRefused
	sessionUnanswered
	factsInvalid
	registrationRefused
	registrationUnanswered
	socketLost
	offerIncompatible
	custodyEnded
	numTroubles
)

var troubleNames = [numTroubles]string{
	credentialUnusable:     "credential-unusable",
	dialFailed:             "dial-failed",
	upgradeRefused:         "upgrade-refused",
	exchangeRefused:        "exchange-refused",
	exchangeUnanswered:     "exchange-unanswered",
	sessionRefused:         "session-refused",
	sessionUnanswered:      "session-unanswered",
	factsInvalid:           "facts-invalid",
	registrationRefused:    "registration-refused",
	registrationUnanswered: "registration-unanswered",
	socketLost:             "socket-lost",
	offerIncompatible:      "offer-incompatible",
	custodyEnded:           "custody-ended",
}

// String returns the trouble's name, which is API.
func (t trouble) String() string { return troubleNames[t] }
