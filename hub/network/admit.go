package network

import "serve.zone/relay/contract"

// Decision is what becomes of a network that came (contract §10.3). Its zero
// value refuses.
type Decision uint8

// The decisions. The first four keep what is held.
const (
	RevisionLower    Decision = iota // refused: its revision is lower than the one held
	RevisionReused                   // refused: the revision held, with other content (contract O22)
	AuthorityForeign                 // refused: another authority than the one held
	PrefixMoved                      // refused: the same authority with another control prefix
	Replay                           // the network that is held; answered with the current state
	Accepted                         // takes the place of what is held
	Emptied                          // a pull answered that there is none; nothing is held any more (contract O23)
	Decisions                        // how many there are
)

var decisionNames = [Decisions]string{
	RevisionLower: "revision-lower", RevisionReused: "revision-reused", AuthorityForeign: "authority-foreign",
	PrefixMoved: "prefix-moved", Replay: "replay", Accepted: "accepted", Emptied: "emptied",
}

// String returns the name of the decision.
func (d Decision) String() string { return decisionNames[d] }

// Takes reports whether what is held changes.
func (d Decision) Takes() bool { return d == Accepted || d == Emptied }

// refusals are what a peer is told; a decision without a name refuses nothing.
var refusals = [Decisions]contract.Refusal{
	RevisionLower: {Name: contract.VPNNetworkRevisionStale,
		Reason: "network.revision is lower than that of the network held"},
	RevisionReused: {Name: contract.VPNNetworkRevisionStale,
		Reason: "network.revision is that of the network held, which has other content"},
	AuthorityForeign: {Name: contract.VPNNetworkAuthorityForeign,
		Reason: "network.authorityId is not that of the network held"},
	PrefixMoved: {Name: contract.VPNNetworkAuthorityForeign,
		Reason: "network.controlPrefix is not that of the network held"},
}

// Refusal returns the refusal that the decision is told with, and false when it
// refuses nothing.
func (d Decision) Refusal() (contract.Refusal, bool) {
	r := refusals[d]
	return r, r.Name != ""
}

// Admit decides about a network that was pushed. held is nil while the hub is
// empty, which is the one state from which it takes any authority (contract
// O22b).
func Admit(held *contract.VPNNetwork, next contract.VPNNetwork) Decision {
	switch {
	case held == nil:
		return Accepted
	case next.AuthorityID != held.AuthorityID:
		return AuthorityForeign
	case next.ControlPrefix != held.ControlPrefix:
		return PrefixMoved
	case next.Revision > held.Revision:
		return Accepted
	case next.Revision < held.Revision:
		return RevisionLower
	case next.Equal(*held):
		return Replay
	}
	return RevisionReused
}

// AdmitPulled decides about the answer to a pull. next is nil when the cluster
// has no network, which empties the hub: nothing is more recent than the answer
// on a live session (contract O23).
func AdmitPulled(held, next *contract.VPNNetwork) Decision {
	if next == nil {
		return Emptied
	}
	return Admit(held, *next)
}
