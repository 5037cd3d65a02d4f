package escrow

import "time"

// instant is one reading of both clocks.
type instant struct {
	wall time.Time     // without a monotonic reading, or a step could not be seen
	mono time.Duration // since the escrow was made
}

// clock judges the wall clock by the monotonic one (design §4, O36).
type clock struct {
	last    instant
	highest time.Time // the latest that the wall clock stood at, or would have by a reading
	suspect bool
	trusted time.Time // while suspect: what the wall clock has to catch up with
}

// mark begins anew: what was seen before does not count.
func (c *clock) mark(at instant) { *c = clock{last: at, highest: at.wall} }

// see takes a reading. The wall clock is suspect from a step back of more than
// suspectStep until a reading has caught up with the highest value it had. That
// value goes on with monotonic time from one reading to the next: a step is seen
// only afterwards, and others have read the clock meanwhile.
func (c *clock) see(at instant) {
	expected := c.last.wall.Add(at.mono - c.last.mono)
	c.highest = later(c.highest, expected)
	if expected.Sub(at.wall) > suspectStep {
		c.suspect, c.trusted = true, c.highest
	}
	if c.suspect && !at.wall.Before(c.trusted) {
		c.suspect = false
	}
	c.highest = later(c.highest, at.wall)
	c.last = at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
