package contract

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// loadVectors reads one file that integration/peers/vectors/make.mjs wrote.
func loadVectors[T any](t testing.TB, name string) T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	var vectors T
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

type canonicalVector struct{ Name, Input, Canonical string }

type refusedVector struct {
	Name        string
	InputBase64 []byte
	Why         string
}

// R05: more than a hundred texts have the canonical form that JSON.stringify gave them.
func TestR05_CanonicalVectors(t *testing.T) {
	vectors := loadVectors[[]canonicalVector](t, "canonical.json")
	if len(vectors) < 100 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		got, err := Canonical([]byte(v.Input))
		if err != nil || string(got) != v.Canonical {
			t.Errorf("%s: got %q, %v; want %q", v.Name, got, err, v.Canonical)
		}
		if n, err := CanonicalLength([]byte(v.Input)); n != len(v.Canonical) || err != nil {
			t.Errorf("%s: length %d, %v; want %d", v.Name, n, err, len(v.Canonical))
		}
		if !EqualCanonical([]byte(v.Input), []byte(v.Canonical)) || !EqualJSON([]byte(v.Input), []byte(v.Canonical)) {
			t.Errorf("%s: is not equal to its canonical form", v.Name)
		}
	}
}

// R05: texts that have no canonical form are refused by the rule that they break, and
// equal nothing.
func TestR05_RefusedVectors(t *testing.T) {
	// What the script calls it, and what this package calls it.
	reasons := map[string]string{
		"invalid utf-8":            "body: is not valid utf-8",
		"too deep":                 "body: nests too deep",
		"not a plain safe integer": "body: holds a number that is not a plain safe integer",
		"malformed":                "body: is malformed, repeats a name or holds a lone surrogate",
		"duplicate name":           "body: is malformed, repeats a name or holds a lone surrogate",
		"lone surrogate":           "body: is malformed, repeats a name or holds a lone surrogate",
		"data after the value":     "body: is malformed, repeats a name or holds a lone surrogate",
	}
	for _, v := range loadVectors[[]refusedVector](t, "refused.json") {
		got, err := Canonical(v.InputBase64)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || got != nil || !slices.Equal(invalid.Reasons, []string{reasons[v.Why]}) {
			t.Errorf("%s: got %q, %v; want %q", v.Name, got, err, reasons[v.Why])
		}
		if EqualCanonical(v.InputBase64, v.InputBase64) {
			t.Errorf("%s: equals itself canonically", v.Name)
		}
	}
}

// R05: names are sorted by UTF-16 code units, as another implementation sorts them, and
// not by bytes.
func TestR05_KeyOrderVectors(t *testing.T) {
	v := loadVectors[struct{ Keys, Sorted []string }](t, "key_order.json")
	object := func(keys []string) []byte {
		w := beginObject(nil)
		for _, key := range keys {
			w.integer(key, 1)
		}
		return w.end()
	}
	got, err := Canonical(object(v.Keys))
	if err != nil {
		t.Fatal(err)
	}
	if want := object(v.Sorted); string(got) != string(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if slices.IsSorted(v.Sorted) {
		t.Error("the vectors do not tell UTF-16 order from byte order")
	}
}

// R06: the digests of every kind of record are those that another implementation
// computed.
func TestR06_DigestVectors(t *testing.T) {
	kinds := map[string]DigestKind{
		"dnsLeaseRenewal":      DNSLeaseRenewalDigest,
		"relayCredential":      RelayCredentialDigest,
		"acceptedRegistration": AcceptedRegistrationDigest,
	}
	seen := map[DigestKind]bool{}
	for _, v := range loadVectors[[]struct{ Name, Kind, Record, Digest string }](t, "digests.json") {
		kind, known := kinds[v.Kind]
		if !known {
			t.Fatalf("%s: unknown kind %s", v.Name, v.Kind)
		}
		seen[kind] = true
		if got, err := Digest(kind, []byte(v.Record)); got != v.Digest || err != nil {
			t.Errorf("%s: got %s, %v; want %s", v.Name, got, err, v.Digest)
		}
	}
	if len(seen) != len(digestDomains) {
		t.Errorf("vectors cover %d of %d digest domains", len(seen), len(digestDomains))
	}
}

type judgedText struct {
	Text  string
	Valid bool
}

func TestScalarVectors(t *testing.T) {
	for _, v := range loadVectors[[]judgedText](t, "days.json") {
		if got := IsUTCDay(v.Text); got != v.Valid {
			t.Errorf("IsUTCDay(%q) = %t", v.Text, got)
		}
	}
	for _, v := range loadVectors[[]judgedText](t, "noise_keys.json") {
		if got := IsNoiseKey(v.Text); got != v.Valid {
			t.Errorf("IsNoiseKey(%q) = %t", v.Text, got)
		}
	}
	for _, v := range loadVectors[[]judgedText](t, "origins.json") {
		if got := IsHTTPOrigin(v.Text); got != v.Valid {
			t.Errorf("IsHTTPOrigin(%q) = %t", v.Text, got)
		}
	}
}

// TestVectorsAreAsMade makes the vectors again. Without Node it is skipped,
// unless RELAY_REQUIRE_NODE=1 says that Node must be there.
func TestVectorsAreAsMade(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("RELAY_REQUIRE_NODE") == "1" {
			t.Fatal("RELAY_REQUIRE_NODE=1 and no node in PATH")
		}
		t.Skip("no node in PATH: the checked-in vectors are used as they are")
	}
	script := filepath.Join("..", "integration", "peers", "vectors", "make.mjs")
	if out, err := exec.Command(node, script, "--check").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
