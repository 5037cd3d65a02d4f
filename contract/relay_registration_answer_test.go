package contract

import (
	"testing"

	"pgregory.net/rapid"
)

const (
	referenceText          = `{"id":"c:1","generation":3,"digest":"` + zeroDigest + `"}`
	registrationAnswerText = `{"origin":"https://relay.example:8443","protocol":` + offerText +
		`,"credential":` + referenceText + `,"acceptedRegistration":{"id":"r","generation":4,"digest":"` + zeroDigest + `"}}`
)

func TestRelayRegistrationAnswer(t *testing.T) {
	checkBodies(t, ReadRelayRegistrationAnswer, []bodyCase{
		{"whole", registrationAnswerText, nil},
		{"accepted", with(t, registrationAnswerText, `{"origin"`, `{"accepted":true,"origin"`), nil},
		{"others are ignored", with(t, registrationAnswerText, `{"origin"`, `{"live":{"at":1.5},"origin"`), nil},
		{"not accepted", with(t, registrationAnswerText, `{"origin"`, `{"accepted":false,"origin"`), []string{`accepted: is not true`}},
		{"accepted as text", with(t, registrationAnswerText, `{"origin"`, `{"accepted":"true","origin"`), []string{`accepted: is not true`}},
		{"missing", `{}`, []string{`origin: is missing`, `protocol: is missing`, `credential: is missing`, `acceptedRegistration: is missing`}},
		{"missing inside", with(t, registrationAnswerText, referenceText, `{}`), []string{
			`credential.id: is missing`, `credential.generation: is missing`, `credential.digest: is missing`}},
		{"twice", with(t, registrationAnswerText, `{"origin"`, `{"\u006frigin":"","origin"`), []string{`origin: is given twice`}},
		{"ignored twice", with(t, registrationAnswerText, `{"origin"`, `{"x":1,"x":1,"origin"`), []string{`body: gives an ignored member twice`}},
		{"reference is exact", with(t, registrationAnswerText, `{"id":"c:1"`, `{"userId":"u","id":"c:1"`), []string{`credential: unknown member "userId"`}},
		{"origin", with(t, registrationAnswerText, `:8443`, `:443`), []string{`origin: is not a canonical https origin`}},
		{"offer", with(t, registrationAnswerText, `"32.0.0"`, `"32.45.0"`), []string{`protocol.minimumPeerVersion: is above interfacesVersion`}},
		{"record", with(t, registrationAnswerText, `"generation":4`, `"generation":0`), []string{`acceptedRegistration.generation: is not a counter`}},
		{"reference", with(t, registrationAnswerText, `"generation":3`, `"generation":0`), []string{`credential.generation: is not a counter`}},
	})
	checkWritten(t, drawRegistrationAnswer, ReadRelayRegistrationAnswer)
}

// R04, O35: in strict mode the answer to a registration is refused with any other
// member, and still admits accepted.
func TestR04_StrictRelayRegistrationAnswer(t *testing.T) {
	checkExactKeys(t, registrationAnswerText, nil, errorOf(ReadStrictRelayRegistrationAnswer))
	checkBodies(t, ReadStrictRelayRegistrationAnswer, []bodyCase{
		{"accepted", with(t, registrationAnswerText, `{"origin"`, `{"accepted":true,"origin"`), nil},
		{"other", with(t, registrationAnswerText, `{"origin"`, `{"live":true,"origin"`), []string{`body: unknown member "live"`}},
	})
	checkWritten(t, drawRegistrationAnswer, ReadStrictRelayRegistrationAnswer)
}

func drawRegistrationAnswer(t *rapid.T) RelayRegistrationAnswer {
	return RelayRegistrationAnswer{drawOrigin(t, "https"), drawOffer(t, "protocol"), drawReference(t, "credential"), drawReference(t, "accepted")}
}

func FuzzReadRelayRegistrationAnswer(f *testing.F) {
	fuzzReader(f, ReadRelayRegistrationAnswer, registrationAnswerText, `{"accepted":false,"origin":"https://a.b/"}`)
}

func FuzzReadStrictRelayRegistrationAnswer(f *testing.F) {
	fuzzReader(f, ReadStrictRelayRegistrationAnswer, registrationAnswerText, `{"accepted":true,"live":1}`)
}
