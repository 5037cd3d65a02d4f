package network

import (
	"testing"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
)

const day = 24 * hour

// ending is a network whose members end so long after start.
func ending(at ...int64) (x contract.VPNNetwork) {
	for _, end := range at {
		x.Nodes = append(x.Nodes, contract.VPNNode{ExpiresAt: start.Wall + end})
	}
	return x
}

// R65: the deadlines of a network are reckoned from where the wall clock would stand if it
// had never been set back, unless what Cloudly grants shows that it had run ahead.
func TestR65_WhereDeadlinesAreReckonedFrom(t *testing.T) {
	for name, test := range map[string]struct {
		seen []Instant
		next contract.VPNNetwork
		now  Instant
		want Instant
	}{
		"nothing was seen":                        {nil, ending(hour), after(minute, 0), after(minute, 0)},
		"the clock goes on":                       {[]Instant{start}, ending(hour), after(minute, 0), after(minute, 0)},
		"it was set ahead":                        {[]Instant{start}, ending(2 * hour), after(minute, hour), after(minute, hour)},
		"it was set back":                         {[]Instant{start}, ending(10 * minute), after(minute, -hour), after(minute, 0)},
		"it was set back bit by bit":              {[]Instant{start, after(1, -minute), after(2, -5*minute)}, ending(10 * minute), after(minute, -hour), after(minute, 0)},
		"one that is over among others, set back": {[]Instant{start}, ending(0, 10*minute), after(minute, -hour), after(minute, 0)},
		"all over, and the clock as it is agrees": {[]Instant{start}, ending(0, -minute), after(minute, 0), after(minute, 0)},
		"all over by either reading":              {[]Instant{start}, ending(-2 * hour), after(minute, -hour), after(minute, 0)},
		"nobody, set back":                        {[]Instant{start}, ending(), after(minute, -hour), after(minute, 0)},
		"it had run ahead":                        {[]Instant{after(0, hour)}, ending(10 * minute), after(minute, 0), after(minute, 0)},
		"it had run ahead, one just over":         {[]Instant{after(0, hour)}, ending(hour + minute), after(minute, 0), after(minute, 0)},
		"it had run ahead by less than is left":   {[]Instant{after(0, hour)}, ending(hour + minute + 1), after(minute, 0), after(minute, hour)},
	} {
		var c Clock
		for _, at := range test.seen {
			c.At(ending(day), at)
		}
		if got := c.At(test.next, test.now); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// R65: what was shown to have run ahead is forgotten for good, and so is everything with a
// registration.
func TestR65_AClockThatWasRightAgain(t *testing.T) {
	var c Clock
	c.At(ending(day), after(0, hour))
	c.At(ending(10*minute), after(minute, 0))
	if got := c.At(ending(2*hour), after(2*minute, 0)); got != after(2*minute, 0) {
		t.Errorf("after a network that showed it: %v", got)
	}
	c.At(ending(day), after(3*minute, hour))
	c.Trust(after(4*minute, 0))
	if got := c.At(ending(2*hour), after(5*minute, 0)); got != after(5*minute, 0) {
		t.Errorf("after a registration: %v", got)
	}
	if got := c.At(ending(2*hour), after(6*minute, -hour)); got != after(6*minute, 0) {
		t.Errorf("set back after a registration: %v", got)
	}
}

// R65: under a wall clock that is only ever set back, a membership lasts until the
// expiresAt of the last network that named it and no longer: whether it was renewed,
// shortened, over, or left out and named again in between.
func TestR65_SettingTheClockBackBuysNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Clock
		elapsed, set := int64(0), int64(0)
		expiresAt := rapid.Int64Range(1, hour).Draw(t, "expiresAt")
		d := NewDeadline(start.Wall+expiresAt, c.At(ending(expiresAt), start))
		for range rapid.IntRange(0, 20).Draw(t, "networks") {
			elapsed += rapid.Int64Range(0, 10*minute).Draw(t, "elapsed")
			set -= rapid.SampledFrom([]int64{0, 1, minute, 24 * hour}).Draw(t, "set back")
			now := after(elapsed, set)
			expiresAt += rapid.Int64Range(-minute, 10*minute).Draw(t, "renewed by")
			// Another member lives: Cloudly grants nothing that is over to all of them.
			at := c.At(ending(expiresAt, elapsed+hour), now)
			if rapid.Bool().Draw(t, "left out before") {
				d = NewDeadline(start.Wall+expiresAt, at)
			} else {
				d = d.Renew(start.Wall+expiresAt, at)
			}
			if d.Reached(now) != (expiresAt <= elapsed) {
				t.Fatalf("%v is reached at %v: %v", d, now, d.Reached(now))
			}
		}
		if end := after(expiresAt, set); !d.Reached(end) {
			t.Fatalf("%v is not reached at %v", d, end)
		}
		if before := after(expiresAt-1, set); expiresAt > elapsed && d.Reached(before) {
			t.Fatalf("%v is reached at %v, too early", d, before)
		}
	})
}
