package contract

// Incompatibility is why two offers do not go together (contract §4).
type Incompatibility string

// The incompatibilities, in the order in which they are judged.
const (
	MajorMismatch        Incompatibility = "major-mismatch"
	PeerBelowMinimum     Incompatibility = "peer-below-minimum"
	SelfBelowPeerMinimum Incompatibility = "self-below-peer-minimum"
)

// Negotiate judges a peer's offer from the local side, in the fixed order of
// contract §4: majors first, then the peer against the local minimum, then the
// local side against the peer's. It returns false and the refusal to send when
// the two do not go together. It is pure.
//
// Both offers must be valid; ReadOffer and Offer.Validate see to that. A text
// that is no release version is a programming error and panics.
func Negotiate(local, remote Offer) (ProtocolRefusal, bool) {
	reason := incompatibility(local, remote)
	if reason == "" {
		return ProtocolRefusal{}, true
	}
	return ProtocolRefusal{Reason: reason, Refusing: local, Refused: remote}, false
}

func incompatibility(local, remote Offer) Incompatibility {
	peerBelow := CompareReleaseVersions(remote.InterfacesVersion, local.MinimumPeerVersion) < 0
	selfBelow := CompareReleaseVersions(local.InterfacesVersion, remote.MinimumPeerVersion) < 0
	switch {
	case releaseMajor(local.InterfacesVersion) != releaseMajor(remote.InterfacesVersion):
		return MajorMismatch
	case peerBelow:
		return PeerBelowMinimum
	case selfBelow:
		return SelfBelowPeerMinimum
	}
	return ""
}
