package simulate

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/contract"
)

// testScope, testReference and testRenewal are of slot 3, which extends a
// projection of slot 2.
func testScope() contract.NodeScope {
	return contract.NodeScope{Controller: defaultController(), NodeID: "node-a", RuntimeNamespace: "default"}
}

func testReference(generation int64) contract.Reference {
	return contract.Reference{ID: "projection-1", Generation: generation, Digest: "sha256:" + strings.Repeat("ab", 32)}
}

func testRenewal(sequence, slot int64) contract.DNSLeaseRenewal {
	r := contract.DNSLeaseRenewal{Controller: defaultController(), NodeID: "node-a", RuntimeNamespace: "default",
		Projection: testReference(1), Sequence: sequence, DNS: slotWindow(slot)}
	r.Digest, _ = r.ComputeDigest()
	return r
}

func TestVerifyRenewal(t *testing.T) {
	authority := NewSigningAuthority(4)
	signed, err := authority.Sign(testRenewal(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	again, err := authority.Sign(testRenewal(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(signed.AppendJSON(nil), again.AppendJSON(nil)); diff != "" {
		t.Errorf("signing again gives other bytes:\n%s", diff)
	}
	next := NewSigningAuthority(5)
	foreign := NewSigningAuthority(4)
	byNext, err := next.Sign(testRenewal(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	change := func(f func(*contract.SignedDNSLeaseRenewal)) contract.SignedDNSLeaseRenewal {
		s := signed
		f(&s)
		return s
	}
	spaced := contract.Raw(strings.ReplaceAll(string(signed.Authority), ":", " : "))
	for _, test := range []struct {
		name       string
		signed     contract.SignedDNSLeaseRenewal
		trusted    Authority
		projection contract.Reference
		want       error
	}{
		{"as signed", signed, authority.Authority, authority.Reference(), nil},
		{"authority spelled otherwise", change(func(s *contract.SignedDNSLeaseRenewal) { s.Authority = spaced }), authority.Authority, authority.Reference(), nil},
		{"another revision is trusted", signed, next.Authority, next.Reference(), ErrRenewalAuthority},
		{"another key of that revision is trusted", signed, foreign.Authority, foreign.Reference(), ErrRenewalAuthority},
		{"envelope names its own authority", byNext, authority.Authority, authority.Reference(), ErrRenewalAuthority},
		{"nothing is trusted", signed, Authority{}, authority.Reference(), ErrRenewalAuthority},
		{"rotated, projection of the revision before", byNext, next.Authority, authority.Reference(), ErrRenewalProjectionAuthority},
		{"window changed", change(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.DNS.ExpiresAt++ }), authority.Authority, authority.Reference(), ErrRenewalSignature},
		{"signature of another", change(func(s *contract.SignedDNSLeaseRenewal) { s.Signature = byNext.Signature }), authority.Authority, authority.Reference(), ErrRenewalSignature},
		{"signature is no base64", change(func(s *contract.SignedDNSLeaseRenewal) { s.Signature = "?" }), authority.Authority, authority.Reference(), ErrRenewalSignature},
		{"signature too short", change(func(s *contract.SignedDNSLeaseRenewal) { s.Signature = base64.StdEncoding.EncodeToString([]byte("x")) }),
			authority.Authority, authority.Reference(), ErrRenewalSignature},
		{"no canonical form", change(func(s *contract.SignedDNSLeaseRenewal) { s.Renewal.Controller = contract.Raw(`{"a":1.5}`) }),
			authority.Authority, authority.Reference(), ErrRenewalSignature},
	} {
		if err := VerifyRenewal(test.signed, test.trusted, test.projection); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
}

func TestSignRefusesWhatIsNoRenewal(t *testing.T) {
	authority := NewSigningAuthority(1)
	bad := testRenewal(0, 3)
	var invalid *contract.InvalidError
	if _, err := authority.Sign(bad); !errors.As(err, &invalid) {
		t.Errorf("sequence 0: %v", err)
	}
	bad = testRenewal(1, 3)
	bad.Controller = contract.Raw(`{"a":1,"a":2}`)
	if _, err := authority.Sign(bad); !errors.As(err, &invalid) {
		t.Errorf("a controller without canonical form: %v", err)
	}
}
