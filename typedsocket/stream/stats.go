package stream

// Outcome says how a stream ended.
type Outcome uint8

// The outcomes.
const (
	OutcomeAccepted  Outcome = iota // accepted by the receiver
	OutcomeRejected                 // rejected by the receiver
	OutcomeAborted                  // aborted by either side's application
	OutcomeIntegrity                // the bytes differ from the descriptor
	OutcomeProtocol                 // the peer broke a rule
	OutcomeIdle                     // no progress
	OutcomeNotOpened                // the peer did not open it
	OutcomeSocket                   // the socket went, or could not queue a frame
	OutcomeDiscarded                // never published
	numOutcomes
)

var outcomeNames = [numOutcomes]string{
	OutcomeAccepted:  "accepted",
	OutcomeRejected:  "rejected",
	OutcomeAborted:   "aborted",
	OutcomeIntegrity: "integrity",
	OutcomeProtocol:  "protocol",
	OutcomeIdle:      "idle",
	OutcomeNotOpened: "not-opened",
	OutcomeSocket:    "socket",
	OutcomeDiscarded: "discarded",
}

// String returns the outcome's stable name.
func (o Outcome) String() string {
	if o >= numOutcomes {
		return "unknown"
	}
	return outcomeNames[o]
}

// Outcomes returns every outcome, so that counters can be set up before the
// first stream ends.
func Outcomes() []Outcome {
	all := make([]Outcome, numOutcomes)
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

// Stats are the counters of a Mux since it was made, and two gauges.
type Stats struct {
	Live int // gauge: streams that count against the limit
	Held int // gauge: memory of received bytes not yet read, in bytes

	Opened         uint64              // streams that were opened, by either side
	Ended          [numOutcomes]uint64 // streams that ended, by Outcome
	LateFrames     uint64              // frames for streams that had ended
	ForeignFrames  uint64              // binary messages that were no frames
	ProtocolErrors uint64              // frames that broke a rule
	BytesIn        uint64              // payload of data frames taken
	BytesOut       uint64              // payload of data frames queued
}

// Stats returns a snapshot.
func (m *Mux) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.stats
	stats.Live = m.live()
	return stats
}
