package demo

import (
	"fmt"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
)

// The grid on which renewals are signed ahead of time, shortened: the real one has a
// slot every ten minutes with a window of fifteen (contract §9.2), and nobody would sit
// through an outage of it. Windows overlap by more than in the real one, so that a busy
// machine which is late by some seconds breaks nothing.
const (
	slotEvery  = time.Second
	slotWindow = 4 * time.Second
	// slotCount is as many as an outage needs here, and the way back: some ten seconds, and
	// three times as many on a busy machine.
	slotCount = 30
	// slotsShown is how many slots an outage lasts that is watched.
	slotsShown = 3
)

// leases signs the renewals of the nodes' DNS windows, as Cloudly does.
type leases struct {
	authority *simulate.SigningAuthority
	from      time.Time // when the grid begins
}

func newLeases(from time.Time) *leases {
	return &leases{authority: simulate.NewSigningAuthority(1), from: from}
}

// window is the window of a slot, counted from 0.
func (l *leases) window(slot int) contract.DNSWindow {
	opens := l.from.Add(time.Duration(slot) * slotEvery)
	return contract.DNSWindow{IssuedAt: opens.UnixMilli(), NotBefore: opens.UnixMilli(), ExpiresAt: opens.Add(slotWindow).UnixMilli()}
}

// opens is when the window of a slot opens.
func (l *leases) opens(slot int) time.Time { return time.UnixMilli(l.window(slot).NotBefore) }

// projection is a projection whose own window is that of slot 0, under this authority.
func (l *leases) projection(of simulate.Projection) simulate.Projection {
	of.Authority, of.DNS = l.authority.Reference(), l.window(0)
	return of
}

// next is the first slot that opens after a time.
func (l *leases) next(after time.Time) int {
	return int(after.Sub(l.from)/slotEvery) + 1
}

// lasting is how many renewals of a run are of use at a time: their windows have not ended.
func (l *leases) lasting(at time.Time) int {
	n := 0
	for slot := 1; slot <= slotCount; slot++ {
		if l.window(slot).ExpiresAt > at.UnixMilli() {
			n++
		}
	}
	return n
}

// run signs the renewals of the slots that follow a projection's own.
func (l *leases) run(of simulate.Projection) (contract.HoldDNSLeaseRenewalsRequest, error) {
	request := contract.HoldDNSLeaseRenewalsRequest{NodeID: of.Scope.NodeID, Projection: of.Reference}
	for slot := 1; slot <= slotCount; slot++ {
		signed, err := l.authority.Sign(contract.DNSLeaseRenewal{
			Controller: of.Scope.Controller, NodeID: of.Scope.NodeID, RuntimeNamespace: of.Scope.RuntimeNamespace,
			Projection: of.Reference, Sequence: int64(slot), DNS: l.window(slot),
		})
		if err != nil {
			return request, fmt.Errorf("sign the renewal of slot %d: %w", slot, err)
		}
		request.Renewals = append(request.Renewals, signed)
	}
	return request, nil
}

// spoil gives one renewal of a run the digest of another one.
func spoil(run contract.HoldDNSLeaseRenewalsRequest) {
	run.Renewals[1].Renewal.Digest = run.Renewals[0].Renewal.Digest
}
