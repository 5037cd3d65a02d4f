package network

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
)

const day = 24 * hour

// ending is a network whose members, by their place, end so long after start.
func ending(at ...int64) *contract.VPNNetwork {
	x := &contract.VPNNetwork{}
	for i, end := range at {
		x.Nodes = append(x.Nodes, contract.VPNNode{NodeID: fmt.Sprintf("node-%d", i), ExpiresAt: start.Wall + end})
	}
	return x
}

// saw is a clock that networks came by at these instants, which show nothing.
func saw(all ...Instant) *Clock {
	c := new(Clock)
	for _, at := range all {
		c.At(ending(day), *ending(day), at)
	}
	return c
}

// R65: the deadlines of a network are reckoned from where the wall clock would stand if it
// had never been set back, unless what Cloudly grants shows that it had run ahead.
func TestR65_WhereDeadlinesAreReckonedFrom(t *testing.T) {
	right, ahead := saw(start), saw(after(0, hour))
	for name, test := range map[string]struct {
		clock      *Clock
		held, next *contract.VPNNetwork
		now        Instant
		want       Instant
	}{
		"nothing was seen":                    {saw(), nil, ending(hour), after(minute, 0), after(minute, 0)},
		"the clock goes on":                   {right, nil, ending(hour), after(minute, 0), after(minute, 0)},
		"set ahead":                           {right, nil, ending(2 * hour), after(minute, hour), after(minute, hour)},
		"set back":                            {right, ending(5 * minute), ending(10 * minute), after(minute, -hour), after(minute, 0)},
		"set back, a member is new":           {right, nil, ending(10 * minute), after(minute, -hour), after(minute, 0)},
		"set back bit by bit":                 {saw(start, after(1, -minute), after(2, -5*minute)), nil, ending(10 * minute), after(minute, -hour), after(minute, 0)},
		"set back, one is over and unchanged": {right, ending(0, 5*minute), ending(0, 10*minute), after(minute, -hour), after(minute, 0)},
		"set back, one is ended":              {right, ending(hour, hour), ending(0, hour), after(minute, -hour), after(minute, 0)},
		"set back, nobody":                    {right, nil, ending(), after(minute, -hour), after(minute, 0)},
		"over by either reading":              {right, nil, ending(-2 * hour), after(minute, -hour), after(minute, 0)},
		"had run ahead, renewed":              {ahead, ending(5*minute, day), ending(10*minute, day), after(minute, 0), after(minute, 0)},
		"had run ahead, a member is new":      {ahead, ending(day), ending(day, 10*minute), after(minute, 0), after(minute, 0)},
		"had run ahead, nothing is new":       {ahead, ending(10*minute, day), ending(10*minute, day), after(minute, 0), after(minute, hour)},
		"had run ahead, one is shortened":     {ahead, ending(day), ending(10 * minute), after(minute, 0), after(minute, hour)},
		"had run ahead, just over":            {ahead, nil, ending(hour + minute), after(minute, 0), after(minute, 0)},
		"had run ahead by less than is left":  {ahead, nil, ending(hour + minute + 1), after(minute, 0), after(minute, hour)},
	} {
		c := *test.clock
		if got := c.At(test.held, *test.next, test.now); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// R65: what was shown to have run ahead is forgotten for good, and so is everything with a
// registration.
func TestR65_AClockThatWasRightAgain(t *testing.T) {
	for name, c := range map[string]*Clock{"after a network that showed it": saw(after(0, hour)), "after a registration": saw(after(0, hour))} {
		if name == "after a registration" {
			c.Trust(after(minute, 0))
		} else {
			c.At(nil, *ending(10 * minute), after(minute, 0))
		}
		for set, want := range map[int64]Instant{0: after(2*minute, 0), -hour: after(2*minute, 0)} {
			if got := c.At(nil, *ending(day), after(2*minute, set)); got != want {
				t.Errorf("%s, set back by %d: %v, want %v", name, -set, got, want)
			}
		}
	}
}

// R65: under a wall clock that is only ever set back, a membership lasts until the
// expiresAt of the last network that named it and no longer: whether it was renewed,
// shortened, over, or left out and named again in between. Cloudly grants nothing that is
// over.
func TestR65_SettingTheClockBackBuysNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Clock
		elapsed, set := int64(0), int64(0)
		expiresAt := rapid.Int64Range(1, hour).Draw(t, "expiresAt")
		d := NewDeadline(start.Wall+expiresAt, c.At(nil, *ending(expiresAt), start))
		for range rapid.IntRange(0, 20).Draw(t, "networks") {
			elapsed += rapid.Int64Range(0, 10*minute).Draw(t, "elapsed")
			set -= rapid.SampledFrom([]int64{0, 1, minute, day}).Draw(t, "set back")
			now := after(elapsed, set)
			next := expiresAt + rapid.Int64Range(-minute, 10*minute).Draw(t, "renewed by")
			leftOut := rapid.Bool().Draw(t, "left out before")
			if leftOut || next > expiresAt {
				next = max(next, elapsed+1)
			}
			held := ending(expiresAt)
			if leftOut {
				held = ending()
			}
			at := c.At(held, *ending(next), now)
			if leftOut {
				d = NewDeadline(start.Wall+next, at)
			} else {
				d = d.Renew(start.Wall+next, at)
			}
			expiresAt = next
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
