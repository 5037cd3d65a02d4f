package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"sync/atomic"
	"time"
)

// state is where a stream is in its life.
type state uint8

const (
	stateOffered state = iota // has a descriptor, no number yet
	stateOpen                 // both ends know its number
	stateEnded                // nothing of it is sent or taken any more
)

// Stream is one end of a directional byte stream. Write, ReadFrom and
// CloseSend are a sender's, Read, WriteTo, Accept, Reject and KeepAlive a
// receiver's; on the other end they return ErrDirection. One Read, Write or
// CloseSend runs at a time, another meanwhile returns ErrBusy; every other
// method may be called at any time from anywhere.
type Stream struct {
	m           *Mux
	id          string
	direction   Direction
	contentType string
	integrity   *Integrity
	descriptor  []byte // nil when the peer made it
	creator     bool   // this side made the descriptor

	wake   chan struct{} // to the one call that may wait: something moved
	done   chan struct{} // closed at the end
	hash   hash.Hash     // of the bytes moved; belongs to the call in progress
	queued atomic.Int64  // memory of frames in the carrier

	// Guarded by Mux.mu.
	state    state
	number   uint32
	flow     string
	err      error
	receipt  Receipt
	sum      *Integrity // what moved, once the sender ended or the receiver drained
	busy     bool       // a call is in progress
	moved    uint64     // bytes sent, or received
	permit   uint64     // bytes that may be sent, or that may arrive
	ended    bool       // the end was sent, or has arrived
	read     uint64     // receiver: bytes the application has read
	in       inbox      // receiver: bytes not yet read
	lapse    *time.Timer
	waits    bool      // the call in progress waits for the peer
	since    time.Time // when it began to, or last saw something move
	idle     *time.Timer
	idleRuns bool // idle will fire
}

func (m *Mux) newStream(id string, d Direction, contentType string, integrity *Integrity) *Stream {
	s := &Stream{
		m:           m,
		id:          id,
		direction:   d,
		contentType: contentType,
		creator:     true,
		wake:        make(chan struct{}, 1),
		done:        make(chan struct{}),
		hash:        sha256.New(),
	}
	if integrity != nil {
		kept := *integrity
		s.integrity = &kept
	}
	return s
}

// ID returns the streamId.
func (s *Stream) ID() string { return s.id }

// Direction returns which way the bytes go, as this side sees it.
func (s *Stream) Direction() Direction { return s.direction }

// ContentType returns the descriptor's contentType, "" when it has none.
func (s *Stream) ContentType() string { return s.contentType }

// Integrity returns what the descriptor says of the bytes, nil when nothing.
func (s *Stream) Integrity() *Integrity {
	if s.integrity == nil {
		return nil
	}
	kept := *s.integrity
	return &kept
}

// Descriptor returns the JSON object that stands for an offered stream in a
// message; nil for a stream that Open returned. A descriptor belongs to its
// socket and is never forwarded to another.
func (s *Stream) Descriptor() []byte { return append([]byte(nil), s.descriptor...) }

func (s *Stream) describe() Descriptor {
	return Descriptor{
		StreamID:         s.id,
		CreatorDirection: s.direction,
		ContentType:      s.contentType,
		Integrity:        s.integrity,
		Transport:        []byte(ourTransport),
	}
}

// Done is closed when the stream has ended.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Err returns why the stream failed: nil while it lives and after the receiver
// accepted it.
func (s *Stream) Err() error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.err
}

// Sum returns length and digest of all bytes that moved. It is known once the
// receiver read the end, or the sender called CloseSend; before, ok is false.
func (s *Stream) Sum() (sum Integrity, ok bool) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.sum == nil {
		return Integrity{}, false
	}
	return *s.sum, true
}

// Published tells that the message with the descriptor is on its way: from now
// on the peer has OpenLimit to open the stream, else it fails with
// ErrNotOpened.
func (s *Stream) Published() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	// The peer may have been quicker than our caller.
	if s.state == stateOffered && s.lapse == nil {
		s.lapse = time.AfterFunc(s.m.cfg.OpenLimit, s.lapsed)
	}
}

func (s *Stream) lapsed() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.state != stateOffered {
		return
	}
	s.m.deaf = true
	s.finish(OutcomeNotOpened, s.m.wrap(ErrNotOpened))
}

// Discard gives up a stream whose descriptor was never sent. One that the
// peer has opened all the same is aborted.
func (s *Stream) Discard() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.state == stateOffered {
		s.finish(OutcomeDiscarded, s.m.wrap(ErrDiscarded))
		return
	}
	s.abort(ReasonDiscarded, nil)
}

// Abort ends the stream at once: the peer learns the reason, what is buffered
// is dropped, and every call in progress returns an AbortedError. It does
// nothing to a stream that has ended. A reason names a rule or a state, never
// a value; at most MaxReason bytes of it are sent.
func (s *Stream) Abort(reason string) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.abort(reason, nil)
}

func (s *Stream) abort(reason string, cause error) {
	reason = boundReason(reason)
	err := &AbortedError{Peer: s.m.cfg.Peer, Reason: reason, Cause: cause}
	s.fail(OutcomeAborted, err, kindAbort, reason)
}

// fail ends the stream and tells the peer. That the frame may find no place
// changes nothing: the stream has ended here, and the peer's idle limit or the
// end of the socket ends it there.
func (s *Stream) fail(o Outcome, err error, kind Kind, reason string) {
	if s.state == stateOpen {
		s.m.control(kind, s.number, 0, reason)
	}
	s.finish(o, err)
}

// carrierFailed ends a stream one of whose frames will never leave.
func (s *Stream) carrierFailed(cause error) error {
	err := s.m.wrap(cause)
	s.fail(OutcomeSocket, err, kindAbort, ReasonQueueFull)
	return err
}

// begin makes the stream an open one.
func (s *Stream) begin(number uint32) {
	if s.lapse != nil {
		s.lapse.Stop()
	}
	s.state = stateOpen
	s.number = number
	s.flow = "stream-" + strconv.FormatUint(uint64(number), 10)
	s.m.open[number] = s
	s.m.stats.Opened++
}

// finish ends the stream; what happens to it later changes nothing.
func (s *Stream) finish(o Outcome, err error) {
	if s.state == stateEnded {
		return
	}
	if s.state == stateOffered {
		delete(s.m.offered, s.id)
	} else {
		delete(s.m.open, s.number)
	}
	s.state = stateEnded
	s.err = err
	s.m.stats.Ended[o]++
	for _, t := range []*time.Timer{s.lapse, s.idle} {
		if t != nil {
			t.Stop()
		}
	}
	if s.queued.Load() > 0 {
		s.m.draining = append(s.m.draining, s)
	}
	s.m.stats.Held -= s.in.drop(s.busy)
	close(s.done)
}

// standing is what frames of this stream are judged by.
func (s *Stream) standing() standing {
	return standing{sending: s.direction == Send, moved: s.moved, permit: s.permit, ended: s.ended}
}

// digest returns what moved so far. The call in progress owns the hash.
func (s *Stream) digest() Integrity {
	return Integrity{
		ByteLength: int64(s.moved),
		Digest:     digestPrefix + hex.EncodeToString(s.hash.Sum(nil)),
	}
}
