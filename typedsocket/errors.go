package typedsocket

import (
	"errors"
	"fmt"
	"time"
)

// ErrClosed is what a call, a forward or an answer meets on a socket that has
// ended or is ending. The socket's own Err tells why.
var ErrClosed = errors.New("socket closed")

// ErrPendingFull is the refusal of a call or forward when as many wait for an
// answer of this peer as its limit allows.
var ErrPendingFull = errors.New("too many calls wait for an answer of this peer")

// ErrRecalled is what a call meets that is not to be sent any more and waits for no
// answer: CallOptions.Recalled.
var ErrRecalled = errors.New("recalled before it was sent")

// ErrEnded is what the second end of a request meets. It is a mistake of whoever
// serves it and changes nothing.
var ErrEnded = errors.New("the request has ended already")

// ErrNoUpgrade is an HTTP request that does not ask for a WebSocket in the way
// RFC 6455 §4.2.1 demands. It has been answered.
var ErrNoUpgrade = errors.New("no WebSocket upgrade")

// EndError says why a socket ended.
type EndError struct {
	Peer   string    // what the socket's owner calls the peer
	Code   CloseCode // sent, or received when Remote
	Remote bool      // the peer closed, or the connection broke
	Why    string    // one rule, with its limit and the value seen; never a peer's text
	Cause  error     // the transport's error, nil when there is none
}

func (e *EndError) Error() string {
	side := "closed"
	if e.Remote {
		side = "closed by the peer"
	}
	text := fmt.Sprintf("socket to %s %s (%d): %s", e.Peer, side, e.Code, e.Why)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *EndError) Unwrap() error { return e.Cause }

// Is makes every ended socket match ErrClosed.
func (e *EndError) Is(target error) bool { return target == ErrClosed }

// TimeoutError is a call whose answer did not come in time. A late answer is
// dropped and counted.
type TimeoutError struct {
	Peer, Method string
	After        time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("call of %s to %s: no answer within %s", e.Method, e.Peer, e.After)
}

// Timeout makes the error a net.Error-like timeout.
func (e *TimeoutError) Timeout() bool { return true }

// RemoteError is an answer that carries an `error` object. Its message names
// the method alone: Text and Data are the peer's and may quote anything.
type RemoteError struct {
	Peer, Method string
	Text         string // `error.text`
	Data         []byte // `error.data` as it came, in memory of its own; nil when absent
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("call of %s: refused by %s", e.Method, e.Peer)
}

// EraseRefusal zeroes the data of the refusal that err is or wraps, and takes it
// out of it: a refusal may repeat a secret of the request, or tell one (contract
// §18). Any other error, and nil, stays as it is.
func EraseRefusal(err error) {
	if refused, ok := errors.AsType[*RemoteError](err); ok {
		clear(refused.Data)
		refused.Data = nil
	}
}

// RetryLimitError is a call that the peer asked to send again once too often,
// or after too long a time.
type RetryLimitError struct {
	Peer, Method string
	Sends        int
	Wait         time.Duration // what the peer asked for last
}

func (e *RetryLimitError) Error() string {
	return fmt.Sprintf("call of %s to %s: asked to retry in %s after %d sends", e.Method, e.Peer, e.Wait, e.Sends)
}

// AnswerError is an answer that is no valid TypedRequest 8 answer.
type AnswerError struct {
	Peer, Method string
	Rule         string // what is wrong with it; never a peer's text
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("call of %s to %s: invalid answer: %s", e.Method, e.Peer, e.Rule)
}

// TooBigError is a request or an answer above the limit of its socket.
type TooBigError struct {
	Peer, Method string
	Size, Limit  int
}

func (e *TooBigError) Error() string {
	return fmt.Sprintf("%s of %s: a frame of %d bytes passes the limit of %d", e.Method, e.Peer, e.Size, e.Limit)
}
