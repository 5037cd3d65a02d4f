package typedsocket

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/envelope"
	"serve.zone/relay/typedsocket/queue"
)

// noMethod is the text of TypedRequest 8 for a method without handler, and
// failureText that of a failure whose cause is nobody's business
// (typedsocket.md §1.2).
const (
	noMethod    = "There is no available method for this call on the server side"
	failureText = "Internal server error"
)

var emptyData = []byte("{}")

// Request is one request of the peer. Whoever serves it ends it exactly once,
// with Answer, Refuse, RefuseMethod, Retry, Fail, Forward or Drop. A second end
// does nothing and returns ErrEnded.
type Request struct {
	s     *Socket
	buf   *buffer.Buffer
	frame envelope.Frame
	state atomic.Int32 // one of the request states

	// What the answer repeats, in memory of its own: the buffer is composed
	// anew when the request is forwarded.
	method   string
	counted  int                 // the memory that Socket.held counts for it
	passed   func(time.Duration) // of a forwarded answer, once it has left
	id       []byte              // JSON token
	instance []byte              // JSON token; nil from a 3.x peer
}

// The states of a request.
const (
	requestOpen      = iota // its server owns it
	requestForwarded        // it waits for an answer from elsewhere
	requestEnded
)

// Socket returns the socket the request came on.
func (r *Request) Socket() *Socket { return r.s }

// Method returns the peer's text of the method. It is the peer's: compare it,
// do not log it.
func (r *Request) Method() string { return r.method }

// Body returns the bytes of the member `request`, exactly as they came. They
// are good until the request is ended.
func (r *Request) Body() []byte { return r.frame.Request }

// Facts returns what the scan of the body found. It is good as long as Body.
func (r *Request) Facts() *envelope.Body { return &r.frame.Body }

// Size returns the memory the request holds, in bytes; 0 once it has ended.
func (r *Request) Size() int {
	if r.buf == nil {
		return 0
	}
	return r.buf.Size()
}

// Erase makes the request's memory be zeroed as soon as it is not needed any
// more, whatever way the request ends (contract §7.1).
func (r *Request) Erase() { r.buf.Erase() }

// requested serves a request or refuses it.
func (s *Socket) requested(b *buffer.Buffer, r *Request) {
	f, limit := &r.frame, s.readFrame
	full, refusing := s.begin(b, r)
	switch {
	case refusing != "":
		r.refuseName(refusing, "this side is draining")
	case full:
		s.counts.overloaded.Add(1)
		r.refuseName(s.cfg.OverloadName, fmt.Sprintf("%d requests or %d bytes wait for an answer on this socket", s.limits.Serving, s.limits.ServingBytes))
	case b.Len() > limit:
		s.counts.tooBig.Add(1)
		r.refuseName("frame-too-large", fmt.Sprintf("%d bytes pass the limit of %d", b.Len(), limit))
	case bytes.HasPrefix(f.Method, tagPrefix):
		r.tag()
	case s.cfg.Handler == nil:
		r.Erase()
		r.refuse(noMethod, emptyData)
	default:
		s.serve(r)
	}
}

// refuseMalformed refuses a request whose body breaks a rule for names and strings.
func (s *Socket) refuseMalformed(b *buffer.Buffer, r *Request, fault *envelope.ScanError) {
	s.begin(b, r)
	r.refuseName("request-malformed", fmt.Sprintf("%s at byte %d", fault.Rule, fault.Offset))
}

// begin takes a request up, with the ids that its answer repeats. It reports
// whether there is no place for it, and the name that everything is refused by
// while this side drains.
func (s *Socket) begin(b *buffer.Buffer, r *Request) (full bool, refusing string) {
	f := &r.frame
	r.s, r.buf, r.method = s, b, string(f.Method)
	ids := make([]byte, 0, len(f.IDToken)+len(f.InstanceToken))
	ids = append(append(ids, f.IDToken...), f.InstanceToken...)
	r.id = ids[:len(f.IDToken):len(f.IDToken)]
	if f.InstanceToken != nil {
		r.instance = ids[len(f.IDToken):]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	full = s.serving >= s.limits.Serving || s.held+b.Size() > s.limits.ServingBytes
	s.serving++
	s.held += b.Size()
	r.counted = b.Size()
	return full, s.refusing
}

// Answer answers the request with the JSON value response; nil is null. It fails, and the
// request is ended all the same, when the socket has ended or the peer does
// not read its answers; the latter ends the socket. response is copied; it may
// be a part of Body.
func (r *Request) Answer(response []byte) error { return r.AnswerIn("", response) }

// AnswerIn is Answer in a flow instead of among the own frames, so that DropFlows
// takes it back while it waits. An answer that is dropped, or for which the flow has
// no room, is replaced by the failure that names no cause.
func (r *Request) AnswerIn(flow string, response []byte) error {
	if !r.end(requestOpen) {
		return ErrEnded
	}
	if response == nil {
		response = null
	}
	b := buffer.Of(response)
	if r.buf.Secret() {
		b.Erase()
	}
	return r.answer(b, nil, nil, flow)
}

// Refuse answers the request with an error. data is a JSON object; nil
// becomes {} (typedsocket.md §1.2).
func (r *Request) Refuse(text string, data []byte) error {
	if data == nil {
		data = emptyData
	}
	return r.refuse(text, data)
}

// Retry asks the peer to send the request again after a time, which is between
// 1 ms and 2147483647 ms (typedsocket.md §1.3).
func (r *Request) Retry(after time.Duration, reason string) error {
	if !r.end(requestOpen) {
		return ErrEnded
	}
	ms := min(max(int(after/time.Millisecond), 1), envelope.MaxRetryWaitMs)
	return r.answer(buffer.Of(null), nil, envelope.AppendRetry(nil, ms, reason), "")
}

// RefuseMethod answers as a router does that has no such method.
func (r *Request) RefuseMethod() error { return r.refuse(noMethod, emptyData) }

// Fail answers with the failure that names no cause.
func (r *Request) Fail() error { return r.refuse(failureText, emptyData) }

// Drop ends the request without an answer, as a TypedRequest 8 router does
// with one it is not allowed to serve (typedsocket.md §1.2).
func (r *Request) Drop() {
	if r.end(requestOpen) {
		r.release()
	}
}

// refuseName refuses as the relay writes refusals (contract §6.1). It is for
// requests that nobody has looked at: any of them may be a registration, whose
// memory is not retained (contract §18).
func (r *Request) refuseName(name, reason string) {
	r.Erase()
	r.refuse(name+": "+reason, fmt.Appendf(nil, `{"code":%q}`, name))
}

func (r *Request) refuse(text string, data []byte) error {
	if !r.end(requestOpen) {
		return ErrEnded
	}
	b := buffer.Of(null)
	if r.buf.Secret() {
		b.Erase()
	}
	return r.answer(b, envelope.AppendError(nil, text, data), nil, "")
}

// answer wraps b, which holds the value of `response`, into an answer to the
// request, which has ended, and queues it. errorValue and retryValue are zeroed.
func (r *Request) answer(b *buffer.Buffer, errorValue, retryValue []byte, flow string) error {
	r.wrap(b, errorValue, retryValue)
	r.release()
	err := r.queue(flow, b)
	if isFull(err) && flow != "" {
		// The flow's bound must not cost the socket, which others share.
		r.dropped()
	}
	return err
}

// dropped sends a failure, among the own frames, in the place of an answer that
// does not leave.
func (r *Request) dropped() {
	b := buffer.Of(null)
	r.wrap(b, envelope.AppendError(nil, failureText, emptyData), nil)
	r.queue("", b)
}

// queue queues an answer. One that finds no place among the own frames ends the
// socket, since the peer does not read its answers: dropping one would leave it
// waiting for ever, keeping them all has no bound.
func (r *Request) queue(flow string, b *buffer.Buffer) error {
	err := r.s.push(flow, queue.Item{Buf: b, Owner: r, Passed: r.passed})
	if err == nil {
		return nil
	}
	b.Release()
	if isFull(err) && flow == "" {
		r.s.fail(CloseSlow, false, err.Error(), nil)
	}
	return err
}

func isFull(err error) bool {
	_, full := errors.AsType[*queue.FullError](err)
	return full
}

var null = []byte("null")

// wrap puts the envelope of an answer around b. Of the values no copy is left but the
// one in b: an error may hold a secret (contract §18).
func (r *Request) wrap(b *buffer.Buffer, errorValue, retryValue []byte) {
	var headRoom [192]byte
	var tailRoom [256]byte
	tail := envelope.AppendResponseTail(tailRoom[:0], r.id, r.instance, errorValue, retryValue)
	b.Wrap(envelope.AppendResponseHead(headRoom[:0], r.method), tail)
	clear(tail)
	clear(errorValue)
	clear(retryValue)
}

// end moves the request from a state to its end. It reports whether the request
// was in that state.
func (r *Request) end(from int32) bool { return r.state.CompareAndSwap(from, requestEnded) }

// release gives the request's own memory back.
func (r *Request) release() {
	if r.buf != nil {
		r.buf.Release()
		r.buf = nil
	}
	r.frame = envelope.Frame{}
	r.s.served(r)
}

// served counts a request as ended, and tells Drain when it was the last.
func (s *Socket) served(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving--
	s.held -= r.counted
	r.counted = 0
	if s.serving == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}
