package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// R06: the digest of any record is SHA-256 over the canonical JSON of domain and
// content without its digest, as a second implementation computes it; without a
// canonical form there is none.
func TestR06_DigestAgreesWithItsDefinition(t *testing.T) {
	name := rapid.SampledFrom([]string{`"a"`, `"b"`, `"digest"`, `"digests"`, `"\u0064igest"`, `"Digest"`, `"domain"`, `"z"`})
	rapid.Check(t, func(t *rapid.T) {
		kind := DigestKind(rapid.IntRange(0, len(digestDomains)-1).Draw(t, "kind"))
		all, others := "{", "{"
		for i, member := range rapid.SliceOfN(name, 0, 5).Draw(t, "names") {
			member += ":" + anyJSON().Draw(t, "value")
			if i > 0 {
				all += ","
			}
			all += member
			if strings.HasPrefix(member, `"digest"`) || strings.HasPrefix(member, `"\u0064igest"`) {
				continue
			}
			if others != "{" {
				others += ","
			}
			others += member
		}
		all, others = all+"}", others+"}"
		got, err := Digest(kind, []byte(all))
		if _, ok := slowCanonical([]byte(all)); !ok {
			if err == nil {
				t.Fatalf("%q has no canonical form, and the digest %s", all, got)
			}
			return
		}
		d := digestDomains[kind]
		hashed, _ := slowCanonical([]byte(`{"` + d.member + `":` + others + `,"domain":"` + d.domain + `"}`))
		sum := sha256.Sum256([]byte(hashed))
		if want := "sha256:" + hex.EncodeToString(sum[:]); got != want || err != nil || !IsDigest(got) {
			t.Fatalf("Digest(%q) = %s, %v; want %s", all, got, err, want)
		}
	})
}

func TestDigestRefusals(t *testing.T) {
	for body, want := range map[string]string{
		`[]`:            "body: is not an object",
		`"digest"`:      "body: is not an object",
		`{"a":1.5}`:     "body: holds a number that is not a plain safe integer",
		`{"a":1,"a":1}`: "body: is malformed, repeats a name or holds a lone surrogate",
		``:              "body: is malformed, repeats a name or holds a lone surrogate",
	} {
		got, err := Digest(DNSLeaseRenewalDigest, []byte(body))
		if diff := cmp.Diff([]string{want}, reasonsIn(t, err)); got != "" || diff != "" {
			t.Errorf("%s: %q, %s", body, got, diff)
		}
	}
}
