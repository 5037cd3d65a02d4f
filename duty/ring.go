package duty

// ring holds the latest events within a bound in count and a bound in bytes.
// It has no lock and no clock: Events is the shell around it.
type ring struct {
	maxCount, maxBytes int
	held               []Event // sequence numbers without gaps
	bytes              int     // what held costs
	last               uint64  // sequence number of the latest event, 0 before the first
}

const (
	// eventCost is what an event takes without its fields: the struct itself,
	// of which type and duty are constants of the program.
	eventCost = 128
	// fieldCost is what a field takes without its text.
	fieldCost = 32
	// maxEventFields bounds the fields of one event. No line of the contract's
	// allow-list needs more than half of it.
	maxEventFields = 16
)

// cost returns the bytes that an event keeps alive.
func cost(e Event) int {
	n := eventCost
	for _, f := range e.Fields {
		n += fieldCost + f.Size()
	}
	return n
}

// push gives e the next sequence number and adds it, and returns how many
// events were overwritten for it. The event itself always stays.
func (r *ring) push(e Event) (seq uint64, overwritten int) {
	r.last++
	e.Seq = r.last
	r.held = append(r.held, e)
	r.bytes += cost(e)
	for len(r.held) > 1 && (len(r.held) > r.maxCount || r.bytes > r.maxBytes) {
		r.bytes -= cost(r.held[0])
		r.held[0] = Event{} // let go of its texts before the array is
		r.held = r.held[1:]
		overwritten++
	}
	return e.Seq, overwritten
}

// since returns copies of the held events numbered seq or later, and how many
// of those asked for were overwritten.
func (r *ring) since(seq uint64) (events []Event, lost uint64) {
	seq = max(seq, 1)
	if seq > r.last {
		return nil, 0
	}
	first := r.held[0].Seq
	if seq < first {
		lost, seq = first-seq, first
	}
	return append(events, r.held[seq-first:]...), lost
}
