package cloudly

import "serve.zone/relay/duty"

// trouble names why there is no session, in an operator's words. It is the reason
// of the readiness check, of events, and a label of a metric.
type trouble uint8

const (
	credentialUnusable trouble = iota
	dialFailed
	certificateRefused
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
	certificateRefused:     "certificate-not-trusted",
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

// advice is what an operator can do about each, as a check's hint.
var advice = [numTroubles]duty.Check{
	credentialUnusable:     {Hint: "Put the exported bearer into the credential file; the check of the credential says what is wrong with it."},
	dialFailed:             {Hint: "Cloudly could not be reached: look at the name, the route and whether it is up. The relay tries again by itself."},
	certificateRefused:     {Hint: "Cloudly's certificate is not trusted, is of another name or out of its dates: look at cloudly-ca-file and at the clock."},
	upgradeRefused:         {Hint: "What answers at Cloudly's address takes no WebSocket: look at the URL and the socket path, and at proxies between."},
	exchangeRefused:        {Hint: "Cloudly refused the bearer: is it the current one of this cluster?"},
	exchangeUnanswered:     {Hint: "Cloudly gave no usable answer to the exchange of the bearer. The relay tries again by itself."},
	sessionRefused:         {Hint: "Cloudly refused the session of this relay; look there for the reason."},
	sessionUnanswered:      {Hint: "Cloudly gave no usable answer when the session began. The relay tries again by itself."},
	factsInvalid:           {Hint: "What the relay would state about itself does not hold: look at node-id and listen."},
	registrationRefused:    {Hint: "Cloudly refused the registration by no name that the relay knows; look there for the reason."},
	registrationUnanswered: {Hint: "Cloudly gave no usable answer to the registration. The relay tries again by itself."},
	socketLost:             {Hint: "The connection to Cloudly broke. The relay tries again by itself."},
	offerIncompatible:      {Hint: "The releases of the relay and of Cloudly do not go together; upgrade one of them."},
	custodyEnded:           {Hint: "Cloudly does not dispatch to this relay; the check of the refusal names what has to be put right there."},
}
