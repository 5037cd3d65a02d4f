package network

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
)

// start is an instant at which the wall clock is right.
var start = Instant{Wall: 1_000_000, Mono: 5_000}

// after is a reading so much later, by a wall clock that was set by that much in
// between.
func after(elapsed, set int64) Instant {
	return Instant{Wall: start.Wall + elapsed + set, Mono: start.Mono + elapsed}
}

const minute, hour = 60_000, 3_600_000

// R65: a membership ends at its wall time or after its span of monotonic time,
// whichever is reached first, to the millisecond.
func TestR65_TheFirstClockEndsAMembership(t *testing.T) {
	d := NewDeadline(start.Wall+minute, start)
	for name, tc := range map[string]struct {
		now  Instant
		want bool
	}{
		"at once":                           {start, false},
		"one before":                        {after(minute-1, 0), false},
		"at expiresAt":                      {after(minute, 0), true},
		"long after":                        {after(hour, 0), true},
		"wall clock set back, before":       {after(minute-1, -hour), false},
		"wall clock set back, then":         {after(minute, -hour), true},
		"wall clock set back a year":        {after(minute, -365*24*hour), true},
		"wall clock set ahead":              {after(1, hour), true},
		"wall clock set ahead, just not":    {after(0, minute-1), false},
		"the machine slept":                 {Instant{Wall: start.Wall + minute, Mono: start.Mono + 1}, true},
		"monotonic alone":                   {Instant{Wall: start.Wall, Mono: start.Mono + minute}, true},
		"monotonic alone, one before":       {Instant{Wall: start.Wall, Mono: start.Mono + minute - 1}, false},
		"wall clock set back to its origin": {Instant{Wall: 0, Mono: start.Mono + minute - 1}, false},
	} {
		if got := d.Reached(tc.now); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if left := d.Remaining(tc.now); left > 0 == tc.want {
			t.Errorf("%s: %v is left", name, left)
		}
	}
	for name, expiresAt := range map[string]int64{"now": start.Wall, "long ago": 0} {
		if d := NewDeadline(expiresAt, start); !d.Reached(start) || d.Remaining(start) != 0 {
			t.Errorf("admitted with an expiry of %s: %v", name, d)
		}
	}
}

// R65: a later network renews, shortens or keeps a deadline, and under a wall clock
// that was set meanwhile the monotonic end stays right.
func TestR65_Renewal(t *testing.T) {
	end := start.Wall + 10*minute
	for name, tc := range map[string]struct {
		admitted  Instant
		expiresAt int64
		want      int64 // monotonic milliseconds after start
	}{
		"repeated":                                    {after(minute, 0), end, 10 * minute},
		"repeated, wall clock set back":               {after(minute, -hour), end, 10 * minute},
		"repeated, wall clock set ahead":              {after(minute, 5*minute), end, 5 * minute},
		"later":                                       {after(minute, 0), end + 5*minute, 15 * minute},
		"later, wall clock set back":                  {after(minute, -hour), end + 5*minute, 15 * minute},
		"later, wall clock set ahead":                 {after(minute, 5*minute), end + 5*minute, 10 * minute},
		"earlier":                                     {after(minute, 0), end - 5*minute, 5 * minute},
		"earlier, wall clock set back":                {after(minute, -hour), end - 5*minute, 5 * minute},
		"earlier than now":                            {after(8*minute, 0), end - 5*minute, 5 * minute},
		"repeated after its end":                      {after(hour, 0), end, 10 * minute},
		"repeated after its end, wall clock set back": {after(hour, -hour), end, 10 * minute},
		"earlier after its end, wall clock set back":  {after(hour, -hour), end - 1, 10*minute - 1},
		"begun anew after its end":                    {after(hour, 0), end + hour, hour + 10*minute},
		"begun anew after its end, wall clock set back, by the clock as it is": {after(hour, -minute), end + hour, hour + 11*minute},
	} {
		d := NewDeadline(end, start).Renew(tc.expiresAt, tc.admitted)
		if want := (Deadline{tc.expiresAt, start.Mono + tc.want}); d != want {
			t.Errorf("%s: %v, want %v", name, d, want)
		}
	}
}

// R65: a clock that ran ahead when the first network was admitted shortens what that
// network granted, and not everything after it.
func TestR65_AClockThatRanAheadIsForgotten(t *testing.T) {
	ahead := after(0, hour)
	end := start.Wall + 10*minute
	d := NewDeadline(end, ahead)
	if !d.Reached(ahead) {
		t.Fatal("a membership that had expired by the clock was admitted")
	}
	right := after(minute, 0)
	d = d.Renew(end+minute, right)
	if want := NewDeadline(end+minute, right); d != want {
		t.Errorf("%v, want %v", d, want)
	}
}

// The largest times that the contract can write neither overflow nor last less
// than they should.
func TestDeadlinesOfAllTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.OneOf(rapid.Int64Range(0, contract.MaximumSafeInteger), rapid.SampledFrom([]int64{0, 1, contract.MaximumSafeInteger}))
		at := Instant{Wall: times.Draw(t, "wall"), Mono: rapid.Int64Range(0, 100*365*24*hour).Draw(t, "mono")}
		first, second := times.Draw(t, "expiresAt"), times.Draw(t, "renewed")
		d := NewDeadline(first, at)
		if d.Reached(at) != (first <= at.Wall) {
			t.Fatalf("%v at %v", d, at)
		}
		if left := first - at.Wall; left > 0 {
			want := time.Duration(min(left, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
			if got := d.Remaining(at); got != want {
				t.Fatalf("%v remains, want %v", got, want)
			}
		}
		if d = d.Renew(second, at); d != NewDeadline(second, at) {
			t.Fatalf("renewed in the same instant: %v, want %v", d, NewDeadline(second, at))
		}
	})
}

func TestInstantAt(t *testing.T) {
	for name, tc := range map[string]struct {
		wall time.Time
		mono time.Duration
		want Instant
	}{
		"now":             {time.UnixMilli(1_767_225_600_123), 4500 * time.Millisecond, Instant{1_767_225_600_123, 4500}},
		"rounded down":    {time.Unix(1, 1_999_999), 1_999_999 * time.Nanosecond, Instant{1001, 1}},
		"before 1970":     {time.Unix(-1, 0), 0, Instant{0, 0}},
		"the zero time":   {time.Time{}, 0, Instant{0, 0}},
		"beyond all JSON": {time.Unix(1<<50, 0), 0, Instant{contract.MaximumSafeInteger, 0}},
	} {
		if got := InstantAt(tc.wall, tc.mono); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
