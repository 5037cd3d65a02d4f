package impair

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason is why a datagram did not pass.
type Reason uint8

// The reasons.
const (
	Lost       Reason = iota // drawn
	TooLarge                 // longer than Path.MaxDatagram
	Blackout                 // the path was dark
	BufferFull               // it would have waited for Path.Rate too long
	QueueFull                // too many bytes waited
	Forgotten                // it was sent to where the client was before a Rebind
	Stranger                 // it came from another address than the upstream's
	Unsent                   // the system did not take it, or its flow is gone
	Closed                   // it waited when the Proxy was closed

	reasons
)

var reasonNames = [reasons]string{
	Lost: "lost", TooLarge: "too-large", Blackout: "blackout", BufferFull: "buffer-full", QueueFull: "queue-full",
	Forgotten: "forgotten", Stranger: "stranger", Unsent: "unsent", Closed: "closed",
}

// String returns the reason's name.
func (r Reason) String() string { return reasonNames[r] }

// Counts is what became of the datagrams of one direction.
type Counts struct {
	Came    uint64            // as many as were sent into the direction
	Passed  uint64            // as many as left it, copies included
	Waiting int               // that leave later, or are leaving
	Dropped map[Reason]uint64 // those that are not 0

	Duplicated, Reordered, Corrupted uint64 // of those that came and were not dropped before
}

// String says it in one line.
func (c Counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d came, %d passed, %d wait, %d duplicated, %d reordered, %d corrupted",
		c.Came, c.Passed, c.Waiting, c.Duplicated, c.Reordered, c.Corrupted)
	for _, r := range slices.Sorted(maps.Keys(c.Dropped)) {
		fmt.Fprintf(&b, ", %d %s", c.Dropped[r], r)
	}
	return b.String()
}

// counters are those of one direction. They change together, under line.mu, so that they
// are in balance whenever they are read.
type counters struct {
	came, passed                     uint64
	duplicated, reordered, corrupted uint64
	dropped                          [reasons]uint64
}

func (c *counters) drop(r Reason) { c.dropped[r]++ }

func (c *counters) read() Counts {
	x := Counts{
		Came: c.came, Passed: c.passed, Dropped: map[Reason]uint64{},
		Duplicated: c.duplicated, Reordered: c.reordered, Corrupted: c.corrupted,
	}
	for r, n := range c.dropped {
		if n > 0 {
			x.Dropped[Reason(r)] = n
		}
	}
	return x
}
