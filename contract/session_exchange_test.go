package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestIdentityExchangeRequest(t *testing.T) {
	const body = `{"token":"` + bearerText + `"}`
	checkBodies(t, ReadIdentityExchangeRequest, []bodyCase{
		{"whole", body, nil},
		{"unknown is not quoted", `{"token":"` + bearerText + `","` + "secretname" + `":1}`, []string{`body: unknown member`}},
		{"missing", `{}`, []string{`token: is missing`}},
		{"twice", `{"token":"` + bearerText + `","\u0074oken":"x"}`, []string{`token: is given twice`}},
		{"kind", `{"token":1}`, []string{`token: is not a string`}},
		{"line end", with(t, body, `"}`, `\n"}`), []string{`token: is not a relay authorization`}},
		{"short", with(t, body, `f"}`, `"}`), []string{`token: is not a relay authorization`}},
		{"upper case", with(t, body, `f"}`, `F"}`), []string{`token: is not a relay authorization`}},
	})
	checkWritten(t, func(t *rapid.T) IdentityExchangeRequest {
		return IdentityExchangeRequest{Secret("clusterRelayToken_" + drawIdentifier(t, "id") + "_" +
			rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "hex"))}
	}, ReadIdentityExchangeRequest)
}

// R04: a member more in the exchange of a bearer is refused, and not even its name is
// repeated.
func TestR04_IdentityExchangeRequest(t *testing.T) {
	_, err := ReadIdentityExchangeRequest([]byte(`{"token":"` + bearerText + `","marked-secret":"marked-secret"}`))
	if err == nil || strings.Contains(err.Error(), "marked") {
		t.Error(err)
	}
}

func TestIdentityExchangeAnswer(t *testing.T) {
	checkBodies(t, ReadIdentityExchangeAnswer, []bodyCase{
		{"least", `{"identity":{"jwt":"a.b.c"}}`, nil},
		{"full identity", `{"identity":{"name":"cluster-a","userId":"user-7","type":"machine","role":"cluster","expiresAt":1767229200000,"jwt":"a.b.c"},"x":[1.5]}`, nil},
		{"missing identity", `{"jwt":"a.b.c"}`, []string{`identity: is missing`}},
		{"missing jwt", `{"identity":{"expiresAt":1}}`, []string{`identity.jwt: is missing`}},
		{"twice", `{"identity":{"jwt":"a","\u006awt":"b"}}`, []string{`identity.jwt: is given twice`}},
		{"ignored twice", `{"identity":{"jwt":"a","x":1,"x":2}}`, []string{`identity: gives an ignored member twice`}},
		{"kind", `{"identity":{"jwt":null}}`, []string{`identity.jwt: is not a string`}},
		{"empty", `{"identity":{"jwt":""}}`, []string{`identity.jwt: is not a token`}},
		{"padding alone", `{"identity":{"jwt":"=="}}`, []string{`identity.jwt: is not a token`}},
		{"line end", `{"identity":{"jwt":"a.b.c\n"}}`, []string{`identity.jwt: is not a token`}},
		{"longest", `{"identity":{"jwt":"` + strings.Repeat("a", 16384) + `"}}`, nil},
		{"too long", `{"identity":{"jwt":"` + strings.Repeat("a", 16385) + `"}}`, []string{`identity.jwt: has more than 16384 bytes`}},
	})
	checkWritten(t, func(t *rapid.T) IdentityExchangeAnswer {
		x := IdentityExchangeAnswer{Identity{JWT: drawJWT(t)}}
		if rapid.Bool().Draw(t, "expires") {
			at := rapid.Int64Range(earliestStated, MaximumSafeInteger).Draw(t, "expiresAt")
			x.Identity.ExpiresAt = &at
		}
		return x
	}, ReadIdentityExchangeAnswer)
}

func TestIdentityExchangeAnswer_ExpiryInAnotherFormIsNotStated(t *testing.T) {
	at := int64(1767229200000)
	for expiresAt, want := range map[string]*int64{
		`1767229200000`:          &at,
		`"2026-01-01T01:00:00Z"`: nil,
		`null`:                   nil,
		`1767229200.5`:           nil,
		`-1`:                     nil,
		`9007199254740992`:       nil,
		`{"seconds":1}`:          nil,
	} {
		got, err := ReadIdentityExchangeAnswer([]byte(`{"identity":{"jwt":"a.b.c","expiresAt":` + expiresAt + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(IdentityExchangeAnswer{Identity{Secret("a.b.c"), want}}, got); diff != "" {
			t.Error(expiresAt, diff)
		}
	}
}

func TestIdentityExchangeAnswer_ComposedIsJudged(t *testing.T) {
	at := int64(-1)
	want := []string{`identity.jwt: is not a token`, `identity.expiresAt: is not a time in unix milliseconds`}
	if diff := cmp.Diff(want, IdentityExchangeAnswer{Identity{ExpiresAt: &at}}.Validate()); diff != "" {
		t.Error(diff)
	}
}

func FuzzReadIdentityExchangeRequest(f *testing.F) {
	fuzzReader(f, ReadIdentityExchangeRequest, `{"token":"`+bearerText+`"}`, `{"token":"","\u0074oken":0}`)
}

func FuzzReadIdentityExchangeAnswer(f *testing.F) {
	fuzzReader(f, ReadIdentityExchangeAnswer, `{"identity":{"jwt":"a.b.c","expiresAt":1}}`, `{"identity":{"jwt":"\ud800"},"x":[]}`)
}
