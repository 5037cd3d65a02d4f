package contract

import (
	"testing"

	"pgregory.net/rapid"
)

func TestClusterConfigurationRequest(t *testing.T) {
	checkBodies(t, ReadClusterConfigurationRequest, []bodyCase{
		{"whole", `{"identity":{"jwt":"a.b.c"}}`, nil},
		{"missing", `{}`, []string{`identity: is missing`}},
		{"missing inside", `{"identity":{}}`, []string{`identity.jwt: is missing`}},
		{"unknown", `{"identity":{"jwt":"a.b.c"},"x":1}`, []string{`body: unknown member`}},
		{"unknown inside", `{"identity":{"jwt":"a.b.c","role":"cluster"}}`, []string{`identity: unknown member`}},
		{"twice", `{"identity":{"jwt":"a.b.c","j\u0077t":""}}`, []string{`identity.jwt: is given twice`}},
		{"token", `{"identity":{"jwt":"a b"}}`, []string{`identity.jwt: is not a token`}},
	})
	checkWritten(t, func(t *rapid.T) ClusterConfigurationRequest {
		return ClusterConfigurationRequest{IdentityCredential{drawJWT(t)}}
	}, ReadClusterConfigurationRequest)
}

func FuzzReadClusterConfigurationRequest(f *testing.F) {
	fuzzReader(f, ReadClusterConfigurationRequest, `{"identity":{"jwt":"a.b.c"}}`, `{"identity":{"jwt":[]}}`)
}
