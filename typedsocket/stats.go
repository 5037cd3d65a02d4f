package typedsocket

import "sync/atomic"

// counters are a socket's own, never reset.
type counters struct {
	framesIn, framesOut, bytesIn, bytesOut atomic.Uint64
	pings, malformed, ignored, unmatched   atomic.Uint64
	timeouts, retries, tooBig              atomic.Uint64
	queueFull, pendingFull, overloaded     atomic.Uint64
	binaryDropped, panics, dropped, pauses atomic.Uint64
}

// Stats is what a socket did so far, and what it holds now. Sizes are bytes.
type Stats struct {
	FramesIn, FramesOut uint64 // messages, control frames not counted; out: begun to be written
	BytesIn, BytesOut   uint64 // of those messages
	Pings               uint64 // sent
	Malformed           uint64 // text that was no acceptable JSON
	Ignored             uint64 // JSON that was no envelope
	Unmatched           uint64 // answers nobody waits for here: late, foreign or wrong
	Timeouts            uint64 // calls and forwards without an answer in time
	Retries             uint64 // sends repeated because the peer asked for it
	TooBig              uint64 // requests and answers above Limits.Frame
	QueueFull           uint64 // frames refused by a bound of the queue
	PendingFull         uint64 // calls refused by Limits.Pending
	Overloaded          uint64 // requests refused by Limits.Serving
	BinaryDropped       uint64 // binary messages that were no stream frame
	Panics              uint64 // recovered from handlers and callbacks
	Dropped             uint64 // frames of flows that DropFlows took back
	Pauses              uint64 // times the reader waited for the peer to read (Limits.Unread)

	Pending    int // calls and forwards that wait for the peer's answer
	Serving    int // requests of the peer that wait for our answer
	QueuedOwn  int // memory of own frames that wait to leave
	QueuedFlow int // memory of all flows' frames that wait to leave
}

// Stats returns a snapshot.
func (s *Socket) Stats() Stats {
	c := &s.counts
	stats := Stats{
		FramesIn: c.framesIn.Load(), FramesOut: c.framesOut.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		Pings: c.pings.Load(), Malformed: c.malformed.Load(),
		Ignored: c.ignored.Load(), Unmatched: c.unmatched.Load(),
		Timeouts: c.timeouts.Load(), Retries: c.retries.Load(),
		TooBig: c.tooBig.Load(), QueueFull: c.queueFull.Load(),
		PendingFull: c.pendingFull.Load(), Overloaded: c.overloaded.Load(),
		BinaryDropped: c.binaryDropped.Load(), Panics: c.panics.Load(),
		Dropped: c.dropped.Load(), Pauses: c.pauses.Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Pending, stats.Serving = len(s.pending), s.serving
	stats.QueuedOwn, stats.QueuedFlow = s.queue.Bytes()
	return stats
}
