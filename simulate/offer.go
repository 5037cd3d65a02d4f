package simulate

import (
	"fmt"
	"strings"

	"serve.zone/relay/contract"
)

// DefaultOffer is what a simulated peer states when it is not told otherwise
// (contract §4, O26).
func DefaultOffer() contract.Offer {
	return contract.Offer{InterfacesVersion: "32.44.0", MinimumPeerVersion: "32.0.0"}
}

// judgeOwnOffer refuses an offer that no peer could state.
func judgeOwnOffer(o contract.Offer) error {
	if reasons := o.Validate(); len(reasons) > 0 {
		return fmt.Errorf("own protocol offer: %s", strings.Join(reasons, "; "))
	}
	return nil
}

// negotiate reads and judges the offer of a request from the server's side,
// before anything else of it is judged (contract §4, steps 2 and 3).
func negotiate(own contract.Offer, body []byte) (verdict, bool) {
	theirs, err := contract.ReadOffer(body)
	if err != nil {
		return refused(err), false
	}
	if refusal, compatible := contract.Negotiate(own, theirs); !compatible {
		return verdict{text: refusal.Text(), data: refusal.AppendData(nil)}, false
	}
	return verdict{}, true
}

// scriptedRefusal is a protocol refusal of a stated reason, with offers for
// which it is true. The refused offer is that of the request, except where no
// offer could give the reason: then its minimum is said to be its own version.
func scriptedRefusal(reason contract.Incompatibility, own contract.Offer, body []byte) verdict {
	theirs, err := contract.ReadOffer(body)
	if err != nil {
		theirs = own
	}
	ours := own
	switch major := majorOf(theirs); reason {
	case contract.MajorMismatch:
		ours = contract.Offer{InterfacesVersion: fmt.Sprint(major+1, ".0.0"), MinimumPeerVersion: fmt.Sprint(major+1, ".0.0")}
	case contract.PeerBelowMinimum:
		above := fmt.Sprint(major, ".999999.0")
		ours = contract.Offer{InterfacesVersion: above, MinimumPeerVersion: above}
	case contract.SelfBelowPeerMinimum:
		lowest := fmt.Sprint(major, ".0.0")
		ours = contract.Offer{InterfacesVersion: lowest, MinimumPeerVersion: lowest}
		if theirs.MinimumPeerVersion == lowest {
			theirs.MinimumPeerVersion = theirs.InterfacesVersion
		}
	}
	refusal := contract.ProtocolRefusal{Reason: reason, Refusing: ours, Refused: theirs}
	return verdict{text: refusal.Text(), data: refusal.AppendData(nil)}
}

func majorOf(o contract.Offer) int {
	var major int
	fmt.Sscanf(strings.SplitN(o.InterfacesVersion, ".", 2)[0], "%d", &major)
	return major
}
