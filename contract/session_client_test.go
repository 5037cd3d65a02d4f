package contract

import (
	"testing"

	"pgregory.net/rapid"
)

const clientSessionText = `{"identity":{"jwt":"a.b.c"},"protocol":` + offerText + `}`

func TestClientSessionRequest(t *testing.T) {
	checkBodies(t, ReadClientSessionRequest, []bodyCase{
		{"whole", clientSessionText, nil},
		{"missing", `{}`, []string{`identity: is missing`, `protocol: is missing`}},
		{"missing inside", `{"identity":{},"protocol":{}}`, []string{`identity.jwt: is missing`,
			`protocol.interfacesVersion: is missing`, `protocol.minimumPeerVersion: is missing`}},
		{"unknown inside", with(t, clientSessionText, `"a.b.c"`, `"a.b.c","userId":"u"`), []string{`identity: unknown member`}},
		{"twice", with(t, clientSessionText, `{"identity"`, `{"\u0069dentity":{"jwt":"x"},"identity"`), []string{`identity: is given twice`}},
		{"rules", `{"identity":{"jwt":"a b"},"protocol":{"interfacesVersion":"32","minimumPeerVersion":"32.0.0"}}`, []string{
			`identity.jwt: is not a token`, `protocol.interfacesVersion: is not a release version`}},
	})
	checkWritten(t, func(t *rapid.T) ClientSessionRequest {
		return ClientSessionRequest{IdentityCredential{drawJWT(t)}, drawOffer(t, "protocol")}
	}, ReadClientSessionRequest)
}

// R04: a member more is refused at every level of a client session; the body may hold a
// secret anywhere, so the member is not named.
func TestR04_ClientSessionRequest(t *testing.T) {
	for _, place := range []string{`{"identity":{"jwt":"a.b.c"},"protocol":` + offerText + `,"marked":1}`,
		`{"identity":{"jwt":"a.b.c","marked":1},"protocol":` + offerText + `}`,
		`{"identity":{"jwt":"a.b.c"},"protocol":{"marked":1,` + offerText[1:] + `}`,
	} {
		_, err := ReadClientSessionRequest([]byte(place))
		reasons := reasonsIn(t, err)
		if len(reasons) != 1 || reasons[0] != "body: unknown member" && reasons[0] != "identity: unknown member" && reasons[0] != "protocol: unknown member" {
			t.Errorf("%s: %q", place, reasons)
		}
	}
}

func TestClientSessionAnswer(t *testing.T) {
	checkBodies(t, ReadClientSessionAnswer, []bodyCase{
		{"least", `{"protocol":` + offerText + `}`, nil},
		{"more", `{"protocol":` + offerText + `,"session":{"x":1.5},"identity":null}`, nil},
		{"missing", `{}`, []string{`protocol: is missing`}},
		{"offer is exact", `{"protocol":{"x":1,` + offerText[1:] + `}`, []string{`protocol: unknown member`}},
		{"twice", `{"protocol":` + offerText + `,"\u0070rotocol":1}`, []string{`protocol: is given twice`}},
	})
	checkWritten(t, func(t *rapid.T) ClientSessionAnswer {
		return ClientSessionAnswer{drawOffer(t, "protocol")}
	}, ReadClientSessionAnswer)
}

func FuzzReadClientSessionRequest(f *testing.F) {
	fuzzReader(f, ReadClientSessionRequest, clientSessionText, `{"identity":{"jwt":""},"x":1}`)
}

func FuzzReadClientSessionAnswer(f *testing.F) {
	fuzzReader(f, ReadClientSessionAnswer, `{"protocol":`+offerText+`,"x":{}}`, `{"protocol":{}}`)
}
