package typedsocket

import (
	"errors"
	"time"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/envelope"
	"serve.zone/relay/typedsocket/queue"
)

// Forward says how a request travels on over another socket.
type Forward struct {
	// Method is the text written into the envelope: the relay's own, from its
	// table, never the peer's.
	Method string
	// Flow is the flow on the destination; "" is the class of own frames.
	Flow string
	// AnswerFlow is the flow on the source for the way back, "answers" by
	// default. An answer that passes its bound costs that answer alone: a
	// failure goes back in its place. Failures are own frames of the source.
	AnswerFlow string
	// Timeout bounds the wait for the answer; default CallTimeout. A request
	// that is given up while it is still queued may leave all the same.
	Timeout time.Duration
	// Judge, when set, sees the answer before it goes back. An error replaces
	// the answer, as Failed says. It runs on the destination's reader and must
	// not block.
	Judge func(*ForwardedAnswer) error
	// Failed, when set, turns the reason why no answer came (or Judge's
	// error) into the text and data of the refusal that the source gets. The
	// default is the failure that names no cause.
	Failed func(error) (text string, data []byte)
	// Left and AnswerLeft, when set, are told when the request, and its answer,
	// was written to the connection: with the time since it had been read whole.
	// They run on the writer of the socket and must not block.
	Left, AnswerLeft func(time.Duration)
	// Ended, when set, is called once when a forward that was begun is over:
	// with nil after an answer went back, or with the reason why none did. It
	// must not block, and runs on whichever goroutine ended it, but never
	// inside a call of the source's or the destination's methods.
	Ended func(error)
}

// ForwardedAnswer is an answer on its way back. It is good during Judge alone.
type ForwardedAnswer struct {
	// Response is the bytes of the member, nil when the peer left it out.
	Response []byte
	// Facts is what the scan of Response found.
	Facts *envelope.Body
	// Accepted tells that the answer carries neither an error nor a retry:
	// only then does Response mean anything.
	Accepted bool
	// ErrorText and ErrorData are the members of an error that is an object
	// with a text (data nil when absent).
	ErrorText string
	ErrorData []byte
	b         *buffer.Buffer
}

// Erase zeroes the answer's memory once it has left.
func (a *ForwardedAnswer) Erase() { a.b.Erase() }

// Forward sends the request on over dst under a fresh envelope and ends it:
// the answer, or a refusal, goes back by itself under the request's own ids.
// The bytes of `request` and `response` are not decoded, not copied and not
// changed; of an answer's other members only an `error` and a `retry` that are
// objects go back (design §3.1), and nothing of the request's.
//
// A nil dst is one that has ended. When Forward returns an error nothing was
// sent, and the request is still the caller's, with its Body, to forward
// elsewhere or to end; its Facts are gone. A forward ends with its source too.
func (r *Request) Forward(dst *Socket, f Forward) error {
	if dst == nil {
		return ErrClosed
	}
	if !r.state.CompareAndSwap(requestOpen, requestForwarded) {
		return ErrEnded
	}
	if f.Timeout == 0 {
		f.Timeout = CallTimeout
	}
	if f.AnswerFlow == "" {
		f.AnswerFlow = "answers"
	}
	var idRoom [2 * idLength]byte
	ids := string(envelope.NewID(envelope.NewID(idRoom[:0])))
	w := &forwardWaiter{r: r, f: f, dst: dst, secret: r.buf.Secret(), id: ids[:idLength], instance: ids[idLength:]}
	body := r.compose(w)
	err := r.s.track(w)
	if err == nil {
		// The buffer is the destination's from the moment it is queued.
		err = dst.submit(outgoing{method: f.Method, id: w.id, instance: w.instance, flow: f.Flow,
			item: queue.Item{Buf: r.buf, Owner: w, Passed: f.Left}, timeout: f.Timeout, waiter: w})
		if err != nil {
			r.s.takeBack(w)
		}
	}
	if err != nil {
		r.buf.Keep(body.at, body.n)
		r.frame.Request, r.frame.RequestAt = r.buf.Bytes(), 0
		r.state.Store(requestOpen)
	}
	return err
}

// part is where something lies in a buffer.
type part struct{ at, n int }

// compose turns the request's buffer into the request that travels on, in
// place, and returns where in it the body lies.
func (r *Request) compose(w *forwardWaiter) (body part) {
	var headRoom, tailRoom [256]byte
	head := envelope.AppendRequestHead(headRoom[:0], w.f.Method)
	body = part{len(head), len(r.frame.Request)}
	r.buf.Keep(r.frame.RequestAt, body.n)
	r.buf.Wrap(head, envelope.AppendRequestTail(tailRoom[:0], w.id, w.instance))
	r.frame = envelope.Frame{}
	return body
}

// track remembers a forward for the end of its source. From then on its memory
// counts on the destination.
func (s *Socket) track(w *forwardWaiter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return s.end
	}
	s.forwards[w] = struct{}{}
	s.held -= w.r.counted
	w.r.counted = 0
	return nil
}

// takeBack undoes track: the request is its server's again.
func (s *Socket) takeBack(w *forwardWaiter) {
	s.mu.Lock()
	delete(s.forwards, w)
	w.r.counted = w.r.buf.Size()
	s.held += w.r.counted
	s.mu.Unlock()
}

func (s *Socket) untrack(w *forwardWaiter) {
	s.mu.Lock()
	delete(s.forwards, w)
	s.mu.Unlock()
}

// idLength is the length of the ids we mint (envelope.NewID).
const idLength = len("uni_") + 24

// forwardWaiter carries an answer back.
type forwardWaiter struct {
	r            *Request
	f            Forward
	dst          *Socket
	secret       bool // the request's memory is erased, so the answer's is too
	id, instance string
}

// abandon gives up waiting, because the source has ended or the request will not
// leave.
func (w *forwardWaiter) abandon(why error) {
	if w.dst.forget(w.id, w.instance) {
		w.failed(why)
	}
}

func (w *forwardWaiter) dropped() { w.abandon(ErrDropped) }

func (w *forwardWaiter) failed(err error) {
	text, data := failureText, emptyData
	if w.f.Failed != nil {
		w.r.s.guard(func() { text, data = w.f.Failed(err) })
	}
	// Among the own frames: it is ours, and nothing of the destination's.
	w.back(buffer.Of(null), envelope.AppendError(nil, text, data), nil, "") // without a stamp
	w.over(err)
}

func (w *forwardWaiter) answered(b *buffer.Buffer, f *envelope.Frame) {
	if w.secret {
		b.Erase()
	}
	errorValue, retryValue := passing(f)
	if w.f.Judge != nil {
		a := ForwardedAnswer{Response: f.Response, Facts: &f.Body, b: b, Accepted: errorValue == nil && retryValue == nil}
		a.ErrorText, a.ErrorData, _ = envelope.ReadError(f.Error)
		err := errPanicked
		w.r.s.guard(func() { err = w.f.Judge(&a) })
		if err != nil {
			clear(errorValue)
			clear(retryValue)
			discard(b)
			w.failed(err)
			return
		}
	}
	if f.Response == nil {
		b.Reset()
		b.Append(null)
	} else {
		b.Keep(f.ResponseAt, len(f.Response))
	}
	w.over(w.back(b, errorValue, retryValue, w.f.AnswerFlow))
}

// passing returns what of an answer's error and retry goes back, in memory of
// its own: an object, or nothing for null; anything else, or an error without
// a text, becomes an unnamed failure.
func passing(f *envelope.Frame) (errorValue, retryValue []byte) {
	_, _, state := envelope.ReadError(f.Error)
	retries := f.Retry != nil && string(f.Retry) != "null"
	if state == envelope.ErrorUnnamed || retries && f.Retry[0] != '{' {
		return envelope.AppendError(nil, failureText, emptyData), nil
	}
	if state == envelope.ErrorNamed {
		errorValue = append([]byte(nil), f.Error...)
	}
	if retries {
		retryValue = append([]byte(nil), f.Retry...)
	}
	return errorValue, retryValue
}

// back queues the answer on the socket the request came on.
func (w *forwardWaiter) back(b *buffer.Buffer, errorValue, retryValue []byte, flow string) error {
	// The request's memory went to the destination; only its ids are left.
	w.r.s.untrack(w)
	w.r.end(requestForwarded)
	w.r.buf = nil
	w.r.passed = w.f.AnswerLeft
	return w.r.answer(b, errorValue, retryValue, flow)
}

func (w *forwardWaiter) over(err error) {
	if w.f.Ended != nil {
		w.r.s.guard(func() { w.f.Ended(err) })
	}
}

// errPanicked stands for the verdict of a Judge that panicked.
var errPanicked = errors.New("the judge of the answer panicked")
