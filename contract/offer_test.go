package contract

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// reasonsIn returns the reasons of an InvalidError, nil for no error.
func reasonsIn(t *testing.T, err error) []string {
	t.Helper()
	var invalid *InvalidError
	if err != nil && !errors.As(err, &invalid) {
		t.Fatalf("%v is no InvalidError", err)
	}
	if invalid == nil {
		return nil
	}
	return invalid.Reasons
}

// R07: an offer whose minimum is above its version or of another major, or whose
// versions are none, is named as wrong.
func TestR07_OwnOfferIsJudged(t *testing.T) {
	for _, tc := range []struct {
		offer Offer
		want  []string
	}{
		{Offer{"32.44.0", "32.0.0"}, nil},
		{Offer{"32.44.0", "32.44.0"}, nil},
		{Offer{"32.44.0", "32.44.1"}, []string{"minimumPeerVersion: is above interfacesVersion"}},
		{Offer{"32.9.0", "32.10.0"}, []string{"minimumPeerVersion: is above interfacesVersion"}},
		{Offer{"32.44.0", "31.0.0"}, []string{"minimumPeerVersion: is of another major than interfacesVersion"}},
		{Offer{"32.44.0", "33.0.0"}, []string{"minimumPeerVersion: is of another major than interfacesVersion", "minimumPeerVersion: is above interfacesVersion"}},
		{Offer{"v32.44.0", "32"}, []string{"interfacesVersion: is not a release version", "minimumPeerVersion: is not a release version"}},
		{Offer{"", "32.0.0"}, []string{"interfacesVersion: is not a release version"}},
	} {
		if diff := cmp.Diff(tc.want, tc.offer.Validate()); diff != "" {
			t.Errorf("%+v: %s", tc.offer, diff)
		}
	}
}

// R08: the offer of a registration is read whatever stands beside it, and is refused by
// name where it is missing, given twice or not exact.
func TestR08_OfferIsReadFromItsKeyAlone(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       []string
	}{
		{"alone", `{"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}}`, nil},
		{"beside anything", `{"nodeId":7,"x":{"a":1,"a":"\ud800"},"y":1e9,"x":2,"protocol":{"minimumPeerVersion":"32.0.0","interfacesVersion":"32.44.0"}}`, nil},
		{"missing", `{"nodeId":"a"}`, []string{"protocol: is missing"}},
		{"null", `{"protocol":null}`, []string{"protocol: is not an object"}},
		{"twice", `{"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"},"protocol":{}}`, []string{"protocol: is given twice"}},
		{"extra key", `{"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0","schemaVersion":1}}`, []string{"protocol: unknown member"}},
		{"missing key", `{"protocol":{"interfacesVersion":"32.44.0"}}`, []string{"protocol.minimumPeerVersion: is missing"}},
		{"wrong kind", `{"protocol":{"interfacesVersion":32,"minimumPeerVersion":"32.0.0"}}`, []string{"protocol.interfacesVersion: is not a string"}},
		{"no version", `{"protocol":{"interfacesVersion":"32","minimumPeerVersion":"32.0.0"}}`, []string{"protocol.interfacesVersion: is not a release version"}},
		{"above", `{"protocol":{"interfacesVersion":"32.0.0","minimumPeerVersion":"32.0.1"}}`, []string{"protocol.minimumPeerVersion: is above interfacesVersion"}},
		{"array", `[]`, []string{"body: is not an object"}},
		{"cut", `{"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}`, []string{"body: is not well-formed json"}},
		{"too deep", `{"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, []string{"body: nests too deep"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			offer, err := ReadOffer([]byte(tc.body))
			if diff := cmp.Diff(tc.want, reasonsIn(t, err)); diff != "" {
				t.Error(diff)
			}
			want := Offer{}
			if tc.want == nil {
				want = Offer{"32.44.0", "32.0.0"}
			}
			if offer != want {
				t.Errorf("got %+v, want %+v", offer, want)
			}
		})
	}
}

// R08: majors are compared first, then the peer with our minimum, then we with the
// peer's.
func TestR08_NegotiationOrder(t *testing.T) {
	for _, tc := range []struct {
		name          string
		local, remote Offer
		want          Incompatibility
	}{
		{"equal", Offer{"32.44.0", "32.0.0"}, Offer{"32.44.0", "32.0.0"}, ""},
		{"at both minimums", Offer{"32.44.0", "32.10.0"}, Offer{"32.10.0", "32.10.0"}, ""},
		{"major before minimum", Offer{"32.44.0", "32.0.0"}, Offer{"31.9.9", "31.0.0"}, MajorMismatch},
		{"newer major", Offer{"32.44.0", "32.0.0"}, Offer{"33.0.0", "33.0.0"}, MajorMismatch},
		{"peer below", Offer{"32.44.0", "32.10.0"}, Offer{"32.9.9", "32.0.0"}, PeerBelowMinimum},
		{"self below", Offer{"32.9.0", "32.0.0"}, Offer{"32.44.0", "32.10.0"}, SelfBelowPeerMinimum},
	} {
		t.Run(tc.name, func(t *testing.T) {
			refusal, compatible := Negotiate(tc.local, tc.remote)
			want := ProtocolRefusal{}
			if tc.want != "" {
				want = ProtocolRefusal{tc.want, tc.local, tc.remote}
			}
			if refusal != want || compatible != (tc.want == "") {
				t.Errorf("got %+v, %t", refusal, compatible)
			}
		})
	}
}

// drawOffer draws a valid offer with small components.
func drawOffer(t *rapid.T, label string) Offer {
	part := rapid.SampledFrom([]string{"0", "1", "9", "10"})
	major := rapid.SampledFrom([]string{"32", "33"}).Draw(t, label+" major")
	version := func(what string) string {
		return major + "." + part.Draw(t, label+" "+what) + "." + part.Draw(t, label+" "+what)
	}
	offer := Offer{version("version"), version("minimum")}
	if CompareReleaseVersions(offer.MinimumPeerVersion, offer.InterfacesVersion) > 0 {
		offer.InterfacesVersion, offer.MinimumPeerVersion = offer.MinimumPeerVersion, offer.InterfacesVersion
	}
	return offer
}

// R08: for any two offers the answer is that of the contract's table of three facts,
// and the mirrored one from the other side.
func TestR08_NegotiationAgreesWithTable(t *testing.T) {
	// The three facts of contract §4, and the answer to each combination.
	type facts struct{ majorsDiffer, peerBelow, selfBelow bool }
	table := map[facts]Incompatibility{
		{false, false, false}: "",
		{false, false, true}:  SelfBelowPeerMinimum,
		{false, true, false}:  PeerBelowMinimum,
		{true, false, false}:  MajorMismatch,
		{true, false, true}:   MajorMismatch,
		{true, true, false}:   MajorMismatch,
	}
	number := func(version string) (n [3]int) {
		for i, digits := range strings.Split(version, ".") {
			for _, d := range digits {
				n[i] = 10*n[i] + int(d-'0')
			}
		}
		return n
	}
	below := func(a, b string) bool {
		x, y := number(a), number(b)
		return x[0]<<32+x[1]<<16+x[2] < y[0]<<32+y[1]<<16+y[2]
	}
	rapid.Check(t, func(t *rapid.T) {
		local, remote := drawOffer(t, "local"), drawOffer(t, "remote")
		want, possible := table[facts{
			number(local.InterfacesVersion)[0] != number(remote.InterfacesVersion)[0],
			below(remote.InterfacesVersion, local.MinimumPeerVersion),
			below(local.InterfacesVersion, remote.MinimumPeerVersion),
		}]
		if !possible {
			t.Fatalf("both sides below each other's minimum: %+v, %+v", local, remote)
		}
		refusal, compatible := Negotiate(local, remote)
		if refusal.Reason != want || compatible != (want == "") {
			t.Fatalf("Negotiate(%+v, %+v) = %+v, %t; want %q", local, remote, refusal, compatible, want)
		}
		back, compatibleBack := Negotiate(remote, local)
		mirror := map[Incompatibility]Incompatibility{"": "", MajorMismatch: MajorMismatch,
			PeerBelowMinimum: SelfBelowPeerMinimum, SelfBelowPeerMinimum: PeerBelowMinimum}
		if back.Reason != mirror[want] || compatibleBack != compatible {
			t.Fatalf("the other side sees %q where this one sees %q", back.Reason, want)
		}
	})
}

func TestNegotiatingNoVersionPanics(t *testing.T) {
	good := Offer{"32.0.0", "32.0.0"}
	for _, bad := range []Offer{{"33", "32.0.0"}, {"32.0.0", ""}} {
		for _, pair := range [][2]Offer{{good, bad}, {bad, good}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("Negotiate(%+v, %+v) did not panic", pair[0], pair[1])
					}
				}()
				Negotiate(pair[0], pair[1])
			}()
		}
	}
}

func FuzzReadOffer(f *testing.F) {
	f.Add([]byte(`{"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"}}`))
	f.Add([]byte(`{"x":[{"protocol":1}],"protocol":{"interfacesVersion":"1.0.0","minimumPeerVersion":"2.0.0"}}`))
	f.Add([]byte(`{"protocol":{"interfacesVersion":"1.0.0","interfacesVersion":"1.0.0"}}`))
	f.Add([]byte(`{"\u0070rotocol":{"interfacesVersion":"1.0.0","minimumPeerVersion":"1.0.0"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		offer, err := ReadOffer(body)
		if err != nil {
			checkReasons(t, err)
			return
		}
		if reasons := offer.Validate(); reasons != nil {
			t.Fatalf("read an offer that is not valid: %v", reasons)
		}
		again, err := ReadOffer(append(offer.AppendJSON([]byte(`{"protocol":`)), '}'))
		if again != offer || err != nil {
			t.Fatalf("wrote %+v, read %+v, %v", offer, again, err)
		}
	})
}
