package simulate

import (
	"errors"
	"time"

	"serve.zone/relay/contract"
)

// Projection is what a node keeps of the network projection it admitted, as far
// as renewals need it.
type Projection struct {
	Reference contract.Reference
	Scope     contract.NodeScope
	Authority contract.Reference // the revision that signed the projection
	DNS       contract.DNSWindow // its own window
}

// Admission is what AdmitRenewal decided about a renewal that it did not refuse.
type Admission string

// The two admissions. OWN: the seeds name the second.
const (
	Admitted Admission = "admitted"
	Replay   Admission = "replay" // the node holds exactly this renewal already
)

// The refusals of AdmitRenewal, in the order in which they are judged. OWN
// names: the seeds state the rules and name no refusal.
var (
	ErrRenewalScope        = errors.New("renewal-scope-foreign: the renewal or the projection is not in the trusted scope")
	ErrRenewalProjection   = errors.New("renewal-projection-not-current: the renewal does not name the current projection")
	ErrRenewalConflict     = errors.New("renewal-sequence-conflict: the sequence of the previous renewal has other content")
	ErrRenewalSequence     = errors.New("renewal-sequence-not-advancing: the sequence is below that of the previous renewal")
	ErrRenewalEarly        = errors.New("renewal-window-not-open: the window has not opened yet")
	ErrRenewalEnded        = errors.New("renewal-window-ended: the window has ended")
	ErrRenewalIssuedBack   = errors.New("renewal-window-moves-back: issuedAt is before that of the previous window")
	ErrRenewalNotExtending = errors.New("renewal-window-not-extending: the window does not end later than the previous one")
)

// AdmitRenewal is the seeds' admitRuntimeNetworkDnsLeaseRenewal: the pure
// decision about a verified renewal, by the node's own admitted projection and
// previous renewal (nil for none), its trusted scope, and its clock.
func AdmitRenewal(renewal contract.DNSLeaseRenewal, current Projection, previous *contract.DNSLeaseRenewal,
	trusted contract.NodeScope, now time.Time) (Admission, error) {
	if !renewal.Scope().Equal(trusted) || !current.Scope.Equal(trusted) {
		return "", ErrRenewalScope
	}
	if renewal.Projection != current.Reference {
		return "", ErrRenewalProjection
	}
	baseline := current.DNS
	if previous != nil {
		baseline = previous.DNS
		switch {
		case renewal.Sequence < previous.Sequence:
			return "", ErrRenewalSequence
		case renewal.Sequence == previous.Sequence:
			// Replay whatever the time is, so that delivering again is idempotent.
			if contract.EqualCanonical(renewal.AppendJSON(nil), previous.AppendJSON(nil)) {
				return Replay, nil
			}
			return "", ErrRenewalConflict
		}
	}
	ms := now.UnixMilli()
	switch {
	case ms < renewal.DNS.NotBefore:
		return "", ErrRenewalEarly
	case ms >= renewal.DNS.ExpiresAt:
		return "", ErrRenewalEnded
	case renewal.DNS.IssuedAt < baseline.IssuedAt:
		return "", ErrRenewalIssuedBack
	case renewal.DNS.ExpiresAt <= baseline.ExpiresAt:
		return "", ErrRenewalNotExtending
	}
	return Admitted, nil
}
