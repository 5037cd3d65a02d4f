package simulate

import (
	"time"

	"serve.zone/relay/contract"
)

// The grid on which Cloudly signs ahead of time: a slot every ten minutes, each
// with a window of the fifteen that a lease may last (contract §9.2).
const (
	SlotEvery  = 10 * time.Minute
	SlotWindow = contract.MaximumDNSLease

	// GridRun is how many windows of the grid fit the horizon of a held run.
	GridRun = int((contract.MaximumEscrowHorizon-SlotWindow)/SlotEvery) + 1
)

// SlotOf returns the number of the slot that a time lies in, counted from the
// Unix epoch.
func SlotOf(t time.Time) int64 { return t.UnixMilli() / SlotEvery.Milliseconds() }

// SlotStart returns when a slot opens.
func SlotStart(slot int64) time.Time { return time.UnixMilli(slot * SlotEvery.Milliseconds()) }

// slotWindow is the window of a slot. It opens with its slot.
func slotWindow(slot int64) contract.DNSWindow {
	start := SlotStart(slot).UnixMilli()
	return contract.DNSWindow{IssuedAt: start, NotBefore: start, ExpiresAt: start + SlotWindow.Milliseconds()}
}
