package network

import (
	"math"
	"time"

	"serve.zone/relay/contract"
)

// Instant is one reading of both clocks, in milliseconds. It is taken once for a
// batch of packets.
type Instant struct {
	Wall int64 // Unix time
	Mono int64 // since whoever reads it began; never goes back
}

// InstantAt is a reading of the wall clock and of a monotonic one.
func InstantAt(wall time.Time, mono time.Duration) Instant {
	return Instant{
		Wall: min(max(wall.UnixMilli(), 0), contract.MaximumSafeInteger),
		Mono: mono.Milliseconds(),
	}
}

// Deadline is when a membership ends: the first of two clocks that reaches its
// time ends it, whether or not Cloudly is there (contract §10.6). The wall clock
// alone would be moved by setting it; the monotonic one alone would stand still
// while the machine sleeps.
type Deadline struct {
	Wall int64 // expiresAt of the network, Unix milliseconds
	Mono int64 // when that is due by the monotonic clock, in milliseconds
}

// NewDeadline is the deadline of a membership that begins with a network admitted
// at that instant. A membership that has expired already has one that is reached.
func NewDeadline(expiresAt int64, admitted Instant) Deadline {
	return Deadline{Wall: expiresAt, Mono: admitted.Mono + expiresAt - admitted.Wall}
}

// Renew is the deadline of a membership that continues under a network that came later,
// reckoned from that instant (Clock.At). The monotonic time moves by as much as expiresAt
// did, or to what is reckoned now, whichever is earlier.
//
// A membership that has ended is begun anew by a later expiresAt. Without that, one
// network reckoned by a clock that ran ahead would shorten every later membership until
// the relay is restarted. An expiresAt that is no later never revives it.
func (d Deadline) Renew(expiresAt int64, admitted Instant) Deadline {
	next := NewDeadline(expiresAt, admitted)
	if expiresAt > d.Wall && d.Reached(admitted) {
		return next
	}
	next.Mono = min(next.Mono, d.Mono+expiresAt-d.Wall)
	return next
}

// Reached reports whether the membership has ended.
func (d Deadline) Reached(now Instant) bool { return now.Wall >= d.Wall || now.Mono >= d.Mono }

// Remaining is how long the membership still lasts if both clocks go on as they
// do, at most 292 years, and 0 once it has ended.
func (d Deadline) Remaining(now Instant) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	left := min(d.Wall-now.Wall, d.Mono-now.Mono)
	return time.Duration(min(max(left, 0), most)) * time.Millisecond
}
