package contract

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// R08: the offer of a registration is read before anything else of it is judged, so
// that a peer of another release hears why it is refused.
func TestR08_RegistrationsAreNegotiatedBeforeTheirShape(t *testing.T) {
	local := Offer{"33.2.0", "33.1.0"}
	for body, want := range map[string]Incompatibility{
		`{"protocol":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"},"novel":1}`:               MajorMismatch,
		`{"protocol":{"interfacesVersion":"33.0.9","minimumPeerVersion":"33.0.0"},"identity":{}}`:            PeerBelowMinimum,
		`{"relay":7,"protocol":{"interfacesVersion":"33.9.0","minimumPeerVersion":"33.3.0"}}`:                SelfBelowPeerMinimum,
		`{"registrationSequence":0,"protocol":{"interfacesVersion":"33.9.0","minimumPeerVersion":"33.2.0"}}`: "",
	} {
		if _, err := ReadRelayRegistrationRequest([]byte(body)); err == nil {
			t.Errorf("%s is a whole request", body)
		}
		if _, err := ReadClientSessionRequest([]byte(body)); err == nil {
			t.Errorf("%s is a whole request", body)
		}
		remote, err := ReadOffer([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		refusal, compatible := Negotiate(local, remote)
		if refusal.Reason != want || compatible != (want == "") {
			t.Errorf("%s: got %q, want %q", body, refusal.Reason, want)
		}
	}
}

// R10: the offer in an acceptance is negotiated from our side: another major, a peer
// below our minimum and we below the peer's are refusals, and an answer without an
// offer is invalid.
func TestR10_AnsweredOfferIsNegotiatedFromTheOwnSide(t *testing.T) {
	local := Offer{"32.44.0", "32.10.0"}
	for body, want := range map[string]error{
		`{"protocol":` + offerText + `}`: nil,
		// A later major may have changed the rest of the answer.
		`{"protocol":{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"},"origin":7}`: ProtocolRefusal{MajorMismatch, local, Offer{"33.0.0", "33.0.0"}},
		`{"protocol":{"interfacesVersion":"32.9.0","minimumPeerVersion":"32.0.0"}}`:            ProtocolRefusal{PeerBelowMinimum, local, Offer{"32.9.0", "32.0.0"}},
		`{"protocol":{"interfacesVersion":"32.50.0","minimumPeerVersion":"32.45.0"}}`:          ProtocolRefusal{SelfBelowPeerMinimum, local, Offer{"32.50.0", "32.45.0"}},
	} {
		if diff := cmp.Diff(want, JudgeAnsweredOffer(local, []byte(body))); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	var invalid *InvalidError
	err := JudgeAnsweredOffer(local, []byte(`{"origin":"https://relay.example"}`))
	if !errors.As(err, &invalid) {
		t.Errorf("an answer without an offer is %v", err)
	}
}
