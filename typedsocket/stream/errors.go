package stream

import (
	"errors"
	"fmt"
)

// Errors a caller branches on. They come wrapped with the peer's name.
var (
	// ErrTooManyStreams is the refusal of a stream above the socket's limit.
	ErrTooManyStreams = errors.New("too many streams on this socket")
	// ErrNotOpened: the peer did not open the stream in time, or never opens
	// any (design O2).
	ErrNotOpened = errors.New("the peer opened no stream in time")
	// ErrIdle: no progress for the idle limit while some was awaited.
	ErrIdle = errors.New("no progress within the idle limit")
	// ErrClosed: the socket is gone, without a reason of its own.
	ErrClosed = errors.New("socket closed")
	// ErrDiscarded: the creator gave up a stream it had not published.
	ErrDiscarded = errors.New("stream discarded")
	// ErrEnded: a call on a stream that its own side has ended already.
	ErrEnded = errors.New("stream has ended")
	// ErrNotDrained: Accept before Read or WriteTo reported the end.
	ErrNotDrained = errors.New("stream not drained to its end")
	// ErrDirection: a sender's call on a receiver, or the reverse.
	ErrDirection = errors.New("call of the other direction")
	// ErrBusy: a second Read, Write or CloseSend while one is in progress.
	ErrBusy = errors.New("stream is in use by another call")
	// ErrAlreadyOpen: the descriptor's streamId is one of an open stream.
	ErrAlreadyOpen = errors.New("stream is open already")
	// ErrNumbersUsedUp: a socket allots 2^31 numbers and never one twice.
	ErrNumbersUsedUp = errors.New("stream numbers of this socket are used up")
)

// errInvalidRead is a source that breaks the contract of io.Reader.
var errInvalidRead = errors.New("reader returned an impossible count")

// What is wrong with a message that is no frame.
const (
	FrameShort    = "shorter than a header"
	FrameVersion  = "unknown version"
	FrameKind     = "unknown kind"
	FrameReserved = "reserved bytes are not zero"
	FrameNumber   = "stream number is zero"
)

// FrameError is a binary message that is no stream frame. It belongs to no
// stream and changed nothing; the socket counts it, drops it or closes.
type FrameError struct {
	Rule string // one of the Frame constants
}

func (e *FrameError) Error() string { return "no stream frame: " + e.Rule }

// ProtocolError is a frame that broke a rule. The stream it belongs to, if
// any, has ended with it.
type ProtocolError struct {
	Peer   string
	Number uint32
	Kind   Kind
	Rule   Rule
	Cause  error // a ReceiptError, or nil
}

func (e *ProtocolError) Error() string {
	text := fmt.Sprintf("stream %d with %s: %s frame breaks %s", e.Number, e.Peer, e.Kind, e.Rule)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *ProtocolError) Unwrap() error { return e.Cause }

// AbortedError is a stream that one side aborted.
type AbortedError struct {
	Peer   string
	Reason string // as given; a peer's text when Remote, so not for a log
	Remote bool   // the peer aborted
	Cause  error  // a context's error, or nil
}

func (e *AbortedError) Error() string { return ended(e.Peer, "aborted", e.Reason, e.Remote) }

func (e *AbortedError) Unwrap() error { return e.Cause }

// RejectedError is a stream whose bytes the receiver refused.
type RejectedError struct {
	Peer   string
	Reason string // as given; a peer's text when Remote, so not for a log
	Remote bool   // the peer is the receiver
}

func (e *RejectedError) Error() string { return ended(e.Peer, "rejected", e.Reason, e.Remote) }

// ended words the end of a stream without repeating what a peer wrote.
func ended(peer, verb, reason string, remote bool) string {
	if !remote {
		return fmt.Sprintf("stream with %s %s: %s", peer, verb, reason)
	}
	if name, known := reasonName(reason); known {
		return fmt.Sprintf("stream with %s %s by the peer: %s", peer, verb, name)
	}
	return fmt.Sprintf("stream with %s %s by the peer for a reason of its own", peer, verb)
}

// IntegrityError is a stream whose bytes are not what its descriptor states.
type IntegrityError struct {
	Peer   string
	Reason string // ReasonIntegrityLength or ReasonIntegrityDigest
}

func (e *IntegrityError) Error() string {
	return fmt.Sprintf("stream with %s: bytes differ from the descriptor: %s", e.Peer, e.Reason)
}

// DescriptorError is a descriptor that breaks a rule of typedsocket.md §1.9.
type DescriptorError struct {
	Member string // path of the member, "" for the descriptor itself
	Rule   string
}

func (e *DescriptorError) Error() string {
	if e.Member == "" {
		return "stream descriptor: " + e.Rule
	}
	return fmt.Sprintf("stream descriptor: %s %s", e.Member, e.Rule)
}

// UnknownTransportError is a valid descriptor for frames that are not ours.
type UnknownTransportError struct{}

func (*UnknownTransportError) Error() string {
	return fmt.Sprintf("stream descriptor: transport is not relayStream %d", version)
}

// ReceiptError is a receipt that cannot be read or is about other bytes.
type ReceiptError struct {
	Rule string
}

func (e *ReceiptError) Error() string { return "stream receipt: " + e.Rule }
