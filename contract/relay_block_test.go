package contract

import (
	"testing"

	"pgregory.net/rapid"
)

func readRelayBlockAlone(body []byte) (ClusterRelay, error) {
	return readAs[ClusterRelay]("cluster relay", body, 0)
}

func TestClusterRelay(t *testing.T) {
	notCanonical := []string{`origin: is not a canonical https origin`}
	checkBodies(t, readRelayBlockAlone, []bodyCase{
		{"port", `{"origin":"https://relay.cluster-a.serve.zone:8443"}`, nil},
		{"no port", `{"origin":"https://relay.cluster-a.serve.zone"}`, nil},
		{"address literal", `{"origin":"https://192.0.2.1:8443"}`, nil},
		{"missing", `{}`, []string{`origin: is missing`}},
		{"twice", `{"origin":"https://a.b","o\u0072igin":"https://a.b"}`, []string{`origin: is given twice`}},
		{"default port", `{"origin":"https://relay.example:443"}`, notCanonical},
		{"upper case", `{"origin":"https://Relay.example"}`, notCanonical},
		{"slash", `{"origin":"https://relay.example/"}`, notCanonical},
		{"userinfo", `{"origin":"https://u@relay.example"}`, notCanonical},
		{"query", `{"origin":"https://relay.example?a"}`, notCanonical},
		{"fragment", `{"origin":"https://relay.example#a"}`, notCanonical},
		{"scheme", `{"origin":"http://relay.example"}`, notCanonical},
	})
	checkExactKeys(t, `{"origin":"https://relay.example"}`, nil, errorOf(readRelayBlockAlone))
	checkWritten(t, func(t *rapid.T) ClusterRelay {
		return ClusterRelay{drawOrigin(t, "https")}
	}, readRelayBlockAlone)
}

func TestClusterRelay_CertificateDomainName(t *testing.T) {
	for origin, want := range map[string]string{
		"https://relay.cluster-a.serve.zone:8443": "relay.cluster-a.serve.zone",
		"https://relay.example":                   "relay.example",
		"https://192.0.2.1:8443":                  "",
		"https://[2001:db8::1]":                   "",
		"http://relay.example":                    "",
		"https://relay.example/":                  "",
	} {
		if got, ok := (ClusterRelay{origin}).CertificateDomainName(); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", origin, got, ok)
		}
	}
}

func drawOrigin(t *rapid.T, scheme string) string {
	return scheme + "://" + rapid.StringMatching(`[a-z][a-z0-9]{0,8}(\.[a-z][a-z0-9]{0,8}){0,2}(:[1-9][0-9]{3})?`).Draw(t, "origin")
}
