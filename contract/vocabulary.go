package contract

import (
	"slices"
	"strings"
)

// Vocabulary is a closed set of refusal names.
type Vocabulary struct{ names []RefusalName }

// Contains reports whether the name is one of the set.
func (v Vocabulary) Contains(name RefusalName) bool { return slices.Contains(v.names, name) }

// Names returns the names in contract order.
func (v Vocabulary) Names() []RefusalName { return slices.Clone(v.names) }

// UndispatchedRefusals are the refusals that end custody (contract §6.1).
func UndispatchedRefusals() Vocabulary { return undispatchedRefusals }

// HoldRefusals are the refusals of holdRuntimeNetworkDnsLeaseRenewals
// (contract §9.3).
func HoldRefusals() Vocabulary { return holdRefusals }

// ApplyVPNNetworkRefusals are the refusals of applyClusterVpnNetwork
// (contract §10.3).
func ApplyVPNNetworkRefusals() Vocabulary { return applyVPNNetworkRefusals }

// IsolatedRestoreRefusals are the refusals of the five isolated-restore methods
// (contract §12.5).
func IsolatedRestoreRefusals() Vocabulary { return isolatedRestoreRefusals }

// IngressRegistrationReasons are the reasons of a refused ingress registration
// in judging order (contract §11.2).
func IngressRegistrationReasons() Vocabulary { return ingressRegistrationReasons }

// TransportRefusals are the relay's own refusals (contract O34).
func TransportRefusals() Vocabulary { return transportRefusals }

var undispatchedRefusals = Vocabulary{[]RefusalName{
	RelayClusterNotEnabled, RelayNodeForeign, RelayNodeUnknown, RelaySequenceNotAdvancing,
	RelayCredentialGenerationStale,
}}

var holdRefusals = Vocabulary{[]RefusalName{
	EscrowRunInvalid, EscrowNodeNotCarried, EscrowRunForeignSession, EscrowRunStale,
	EscrowRunUnordered, EscrowCloudlyOnly,
}}

var applyVPNNetworkRefusals = Vocabulary{[]RefusalName{
	VPNNetworkRevisionStale, VPNNetworkAuthorityForeign,
}}

var isolatedRestoreRefusals = Vocabulary{[]RefusalName{
	RestoreNodeNotCarried, RestoreNodeUnreachable, RestoreNodeRefused,
}}

var ingressRegistrationReasons = Vocabulary{[]RefusalName{
	IngressNotReady, IngressRegistrationInvalid, IngressRelayNotConnected, IngressNotDesignated,
	IngressNodeMismatch, IngressAssignmentNotRunning, IngressBearerRefused, IngressConflict,
}}

var transportRefusals = Vocabulary{[]RefusalName{
	RelayNotReady, RelayNodeNotCarried, RelayNodeSessionNotCurrent, RelayMethodNotForwarded,
	RelayCloudlyOnly, RelayOverloaded, ClusterIngressNotRegistered, ClosureTransportUnsupported,
}}

// FindRefusal returns the name that the answer to one of the relay's own calls
// was refused with: the leading token of the error's text, which is what stands
// before the first ':' or else the whole text, and if that is none of the
// names, the member code of the error's data (design §4, O10). A name inside
// other words is no name. False means an unnamed failure, which changes nothing
// held.
//
// Data is the bytes of error.data, nil when the answer had none.
func FindRefusal(text string, data []byte, among Vocabulary) (RefusalName, bool) {
	token, _, _ := strings.Cut(text, ":")
	if name := RefusalName(token); among.Contains(name) {
		return name, true
	}
	if name := codeOf(data); among.Contains(name) {
		return name, true
	}
	return "", false
}

// IsForwardedCustodyRefusal reports whether an answer that is forwarded to a
// node tells the relay that its own credential is no longer current. Only this
// one name counts there, and only as error.data.code: the text belongs to the
// node and to whoever wrote it (design §4, O10).
func IsForwardedCustodyRefusal(data []byte) bool {
	return codeOf(data) == RelayCredentialGenerationStale
}

// codeOf returns the member code of an error's data, or "" when the data is not
// one well-formed object with one such text.
func codeOf(data []byte) RefusalName {
	var code string
	if reasons := readShape(data, 0, onlyMembers(optional("code", text(&code)))); reasons != nil {
		return ""
	}
	return RefusalName(code)
}
