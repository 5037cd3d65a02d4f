package typedsocket

// Count is one of the figures of Stats that only grow, as a label of a metric.
type Count uint8

// The counts, in the order of Stats.
const (
	CountFramesIn Count = iota
	CountFramesOut
	CountPings
	CountMalformed
	CountIgnored
	CountUnmatched
	CountTimeouts
	CountRetries
	CountTooBig
	CountQueueFull
	CountPendingFull
	CountOverloaded
	CountBinaryDropped
	CountPanics
	CountDropped
	CountPauses
	Counts // how many there are
)

// String returns the count's name.
func (c Count) String() string {
	return [Counts]string{
		CountFramesIn: "frames-in", CountFramesOut: "frames-out", CountPings: "pings",
		CountMalformed: "malformed", CountIgnored: "ignored", CountUnmatched: "unmatched",
		CountTimeouts: "timeouts", CountRetries: "retries", CountTooBig: "too-big",
		CountQueueFull: "queue-full", CountPendingFull: "pending-full", CountOverloaded: "overloaded",
		CountBinaryDropped: "binary-dropped", CountPanics: "panics", CountDropped: "dropped", CountPauses: "pauses",
	}[c]
}

// Of returns one of the counts.
func (s Stats) Of(c Count) uint64 {
	return [Counts]uint64{
		CountFramesIn: s.FramesIn, CountFramesOut: s.FramesOut, CountPings: s.Pings,
		CountMalformed: s.Malformed, CountIgnored: s.Ignored, CountUnmatched: s.Unmatched,
		CountTimeouts: s.Timeouts, CountRetries: s.Retries, CountTooBig: s.TooBig,
		CountQueueFull: s.QueueFull, CountPendingFull: s.PendingFull, CountOverloaded: s.Overloaded,
		CountBinaryDropped: s.BinaryDropped, CountPanics: s.Panics, CountDropped: s.Dropped, CountPauses: s.Pauses,
	}[c]
}

// Tally adds up the counts of sockets that have ended. It is not safe for
// concurrent use: whoever knows which sockets stand guards it by the same lock,
// so that none is counted twice or not at all.
type Tally [Counts]uint64

// Add adds the counts of a socket that is done.
func (t *Tally) Add(s Stats) {
	for c := range Counts {
		t[c] += s.Of(c)
	}
}
