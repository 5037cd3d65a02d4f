package escrow

import (
	"time"

	"serve.zone/relay/contract"
)

// run is what is held for one node.
type run struct {
	projection contract.Reference
	scope      contract.NodeScope
	renewals   []renewal // in order, never empty; each window ends later than the one before
	bytes      int       // of the records as they came
	endTold    bool      // the end of the last window was an event
}

// renewal is one record of a run, as far as it is needed to push it.
type renewal struct {
	sequence  int64
	notBefore int64 // Unix milliseconds, as expiresAt
	expiresAt int64
	digest    string
	signed    contract.Raw // the record as it came (contract §9.5)
}

// newRun takes over a run that is valid, in order and not empty. It keeps no memory
// of the request but what it needs, in one piece.
func newRun(x contract.HoldDNSLeaseRenewalsRequest) *run {
	scope, _ := x.Scope()
	r := &run{projection: x.Projection, scope: scope, renewals: make([]renewal, 0, len(x.Renewals)), bytes: sizeOf(x)}
	records := make([]byte, 0, r.bytes)
	for _, s := range x.Renewals {
		begin := len(records)
		records = append(records, s.Received...)
		r.renewals = append(r.renewals, renewal{
			sequence: s.Renewal.Sequence, digest: s.Renewal.Digest,
			notBefore: s.Renewal.DNS.NotBefore, expiresAt: s.Renewal.DNS.ExpiresAt,
			signed: records[begin:len(records):len(records)],
		})
	}
	return r
}

// sizeOf returns how many bytes the records of a run have.
func sizeOf(x contract.HoldDNSLeaseRenewalsRequest) int {
	n := 0
	for _, s := range x.Renewals {
		n += len(s.Received)
	}
	return n
}

// current returns the one that a node may be given at a time: of those whose window
// is current, the one with the highest sequence (contract §9.5).
func (r *run) current(ms int64) (renewal, bool) {
	for i := len(r.renewals) - 1; i >= 0; i-- {
		// Windows are ordered by their ends alone: a later one may open earlier.
		if x := r.renewals[i]; x.notBefore <= ms && ms < x.expiresAt {
			return x, true
		}
	}
	return renewal{}, false
}

// next returns when the next window opens, false if all have.
func (r *run) next(ms int64) (opens int64, ok bool) {
	for _, x := range r.renewals {
		if x.notBefore > ms && (!ok || x.notBefore < opens) {
			opens, ok = x.notBefore, true
		}
	}
	return opens, ok
}

// end returns when the last window ends.
func (r *run) end() int64 { return r.renewals[len(r.renewals)-1].expiresAt }

// left returns how many windows have not ended.
func (r *run) left(ms int64) int {
	for i, x := range r.renewals {
		if ms < x.expiresAt {
			return len(r.renewals) - i
		}
	}
	return 0
}

// reference names a renewal of the run in an acknowledgement.
func (r *run) reference(x renewal) contract.DNSLeaseRenewalReference {
	return contract.DNSLeaseRenewalReference{Projection: r.projection, Sequence: x.sequence, Digest: x.digest}
}

// milliseconds returns the time in which windows are given.
func milliseconds(t time.Time) int64 { return t.UnixMilli() }

// retryAfter returns how long after a push that was not acknowledged the next one
// follows. pushed counts those so far, from 1.
func retryAfter(pushed int) time.Duration {
	wait := firstRetry
	for range pushed - 1 {
		if wait *= 2; wait >= lastRetry {
			return lastRetry
		}
	}
	return wait
}
