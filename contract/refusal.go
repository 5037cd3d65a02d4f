package contract

import "unicode/utf8"

// RefusalName names why a call was refused. Names are compared exactly.
type RefusalName string

// The five undispatched refusals: Cloudly states that it does not dispatch to
// this relay, and custody ends (contract §6.1).
const (
	RelayClusterNotEnabled         RefusalName = "relay-cluster-not-enabled"
	RelayNodeForeign               RefusalName = "relay-node-foreign"
	RelayNodeUnknown               RefusalName = "relay-node-unknown"
	RelaySequenceNotAdvancing      RefusalName = "relay-sequence-not-advancing"
	RelayCredentialGenerationStale RefusalName = "relay-credential-generation-stale"
)

// The six refusals of a hold (contract §9.3).
const (
	EscrowRunInvalid        RefusalName = "escrow-run-invalid"
	EscrowNodeNotCarried    RefusalName = "escrow-node-not-carried"
	EscrowRunForeignSession RefusalName = "escrow-run-foreign-session"
	EscrowRunStale          RefusalName = "escrow-run-stale"
	EscrowRunUnordered      RefusalName = "escrow-run-unordered"
	EscrowCloudlyOnly       RefusalName = "escrow-cloudly-only"
)

// The two refusals of a VPN network (contract §10.3).
const (
	VPNNetworkRevisionStale    RefusalName = "vpn-network-revision-stale"
	VPNNetworkAuthorityForeign RefusalName = "vpn-network-authority-foreign"
)

// The three refusals of isolated restore (contract §12.5).
const (
	RestoreNodeNotCarried  RefusalName = "restore-node-not-carried"
	RestoreNodeUnreachable RefusalName = "restore-node-unreachable"
	RestoreNodeRefused     RefusalName = "restore-node-refused"
)

// The reasons of a refused ingress registration, in judging order. They travel
// as the reason of IClusterIngressRegistrationRefusal, never as a leading name
// (contract §11.2).
const (
	IngressNotReady             RefusalName = "not-ready"
	IngressRegistrationInvalid  RefusalName = "registration-invalid"
	IngressRelayNotConnected    RefusalName = "relay-not-connected"
	IngressNotDesignated        RefusalName = "ingress-not-designated"
	IngressNodeMismatch         RefusalName = "node-mismatch"
	IngressAssignmentNotRunning RefusalName = "assignment-not-running"
	IngressBearerRefused        RefusalName = "bearer-refused"
	IngressConflict             RefusalName = "conflict"
)

// The relay's own refusals on its transport. OWN: the seeds have no names for
// them (contract O34; the last one design §4, O2).
const (
	RelayNotReady               RefusalName = "relay-not-ready"
	RelayNodeNotCarried         RefusalName = "relay-node-not-carried"
	RelayNodeSessionNotCurrent  RefusalName = "relay-node-session-not-current"
	RelayMethodNotForwarded     RefusalName = "relay-method-not-forwarded"
	RelayCloudlyOnly            RefusalName = "relay-cloudly-only"
	RelayOverloaded             RefusalName = "relay-overloaded"
	ClusterIngressNotRegistered RefusalName = "cluster-ingress-not-registered"
	ClosureTransportUnsupported RefusalName = "closure-transport-unsupported"
)

// maximumRefusalReason bounds the reason in a refusal's text. Corestore's own
// reason is passed on in one place (contract §12.5) and must not grow a frame.
const maximumRefusalReason = 512

// Refusal is the error with which the relay refuses a call by name.
type Refusal struct {
	Name RefusalName
	// Reason is for a person to read. It names members and rules, never values;
	// empty when the name says it all.
	Reason string
}

// Error returns the text of the refusal.
func (r *Refusal) Error() string { return r.Text() }

// LogName is what a log says of the refusal (duty/field.Named): its name.
func (r *Refusal) LogName() string { return string(r.Name) }

// Text returns "<name>: <reason>", or the name alone, with the reason cut at
// 512 bytes.
func (r *Refusal) Text() string {
	if r.Reason == "" {
		return string(r.Name)
	}
	reason := r.Reason
	if len(reason) > maximumRefusalReason {
		cut := maximumRefusalReason
		for cut > 0 && !utf8.RuneStart(reason[cut]) {
			cut--
		}
		reason = reason[:cut]
	}
	return string(r.Name) + ": " + reason
}

// AppendData appends the data in which the refusal travels beside its text:
// { code } (contract §6.1, O10).
func (r *Refusal) AppendData(dst []byte) []byte {
	w := beginObject(dst)
	w.text("code", string(r.Name))
	return w.end()
}
