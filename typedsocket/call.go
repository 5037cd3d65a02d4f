package typedsocket

import (
	"context"
	"time"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/envelope"
	"serve.zone/relay/typedsocket/queue"
	"serve.zone/relay/typedsocket/stream"
)

// CallOptions change one call. The zero value is right for most.
type CallOptions struct {
	// Timeout bounds the wait for the answer of each send; default CallTimeout.
	Timeout time.Duration
	// Flow queues the call in a flow instead of among the own frames.
	Flow string
	// Erase zeroes the request's memory once it has left.
	Erase bool
	// Refused, when set, sees an answer that carries an error before anything
	// that the peer sent behind it is looked at. It runs on the socket's reader
	// and must not block. What it has seen is what Call returns.
	Refused func(*RemoteError)
	// Recalled, when set, is closed once the call must not be sent any more, neither
	// for the first time nor again. It fails with ErrRecalled then, also when its frame
	// waits to be written. The answer of one that has left, or is being written, is
	// waited for. A frame in a flow counts as one that has left.
	Recalled <-chan struct{}
	// Streams are those whose descriptors stand in the request. Their open
	// deadline begins when the request is queued, and they are aborted when
	// the call fails.
	Streams []*stream.Stream
}

// Answer is an answer of the peer. Release it when done.
type Answer struct {
	buf      *buffer.Buffer
	response []byte
	facts    envelope.Body
}

// Response returns the bytes of the member `response`, exactly as they came.
// They are good until Release.
func (a *Answer) Response() []byte { return a.response }

// Facts returns what the scan of the response found; good as long as Response.
func (a *Answer) Facts() *envelope.Body { return &a.facts }

// Erase makes Release zero the answer's memory (contract §18).
func (a *Answer) Erase() { a.buf.Erase() }

// Release gives the memory back.
func (a *Answer) Release() { a.buf.Release() }

// Call sends a request of our own and waits for the answer. request is a JSON
// object; nil is {}. A peer that asks for a retry gets the request again after the time
// it names, at most 3 times and after at most 5 minutes, each under a new instance id (typedsocket.md
// §1.3). Errors: *RemoteError when the peer answers with an error,
// *TimeoutError, *RetryLimitError, *AnswerError, *TooBigError, ErrPendingFull,
// ErrRecalled, *queue.FullError, ErrClosed, or the context's. Whoever is done
// with a refusal gives it to EraseRefusal, as an Answer is released.
func (s *Socket) Call(ctx context.Context, method string, request []byte, o CallOptions) (*Answer, error) {
	if o.Timeout == 0 {
		o.Timeout = CallTimeout
	}
	answer, err := s.call(ctx, method, request, o)
	if err != nil {
		for _, st := range o.Streams {
			st.Abort("call failed")
		}
	}
	return answer, err
}

func (s *Socket) call(ctx context.Context, method string, request []byte, o CallOptions) (*Answer, error) {
	id := string(envelope.NewID(nil))
	for sends := 1; ; sends++ {
		answer, retry, err := s.send(ctx, method, id, request, o)
		if err != nil || answer != nil {
			return answer, err
		}
		// A stream's descriptor is good for one message.
		if sends > maxRetries || retry > maxRetryWait || len(o.Streams) > 0 {
			return nil, &RetryLimitError{Peer: s.cfg.Peer, Method: method, Sends: sends, Wait: retry}
		}
		s.counts.retries.Add(1)
		if err := s.pause(ctx, o.Recalled, retry); err != nil {
			return nil, err
		}
	}
}

// pause waits before a retry.
func (s *Socket) pause(ctx context.Context, recalled <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-recalled:
		return ErrRecalled
	case <-s.ending:
		return s.Err()
	}
}

// send sends once. It returns an answer, or how long to wait before a retry,
// or an error.
func (s *Socket) send(ctx context.Context, method, id string, request []byte, o CallOptions) (*Answer, time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	select {
	case <-o.Recalled:
		return nil, 0, ErrRecalled
	default:
	}
	instance := string(envelope.NewID(nil))
	if request == nil {
		request = emptyData
	}
	b := buffer.Of(request)
	if o.Erase {
		b.Erase()
	}
	var head, tail [256]byte
	b.Wrap(envelope.AppendRequestHead(head[:0], method), envelope.AppendRequestTail(tail[:0], id, instance))
	w := &callWaiter{s: s, refused: o.Refused, method: method, id: id, instance: instance, done: make(chan callResult, 1)}
	err := s.submit(outgoing{method: method, id: id, instance: instance, flow: o.Flow,
		item: queue.Item{Buf: b, Owner: w}, timeout: o.Timeout, waiter: w})
	if err != nil {
		b.Release()
		return nil, 0, err
	}
	for _, st := range o.Streams {
		st.Published()
	}
	recalled := o.Recalled
	for {
		select {
		case r := <-w.done:
			return r.answer, r.retry, r.err
		case <-recalled:
			if s.withdraw(w) {
				return nil, 0, ErrRecalled
			}
			recalled = nil
			continue
		case <-ctx.Done():
		}
		if s.forget(id, instance) {
			return nil, 0, ctx.Err()
		}
		// The answer is on its way to us already, and its memory with it. Nobody
		// looked at it, so nobody could say that it is secret.
		r := <-w.done
		if r.answer != nil {
			discard(r.answer.buf)
		}
		if refused, ok := r.err.(*RemoteError); ok {
			return nil, 0, refused // whose memory needs an owner
		}
		return nil, 0, ctx.Err()
	}
}

// withdraw takes a call back whose frame waits to be written, and reports whether it does.
func (s *Socket) withdraw(w *callWaiter) bool {
	s.mu.Lock()
	item, waits := s.queue.WithdrawOwn(w)
	s.mu.Unlock()
	if !waits {
		return false
	}
	item.End(false)
	s.forget(w.id, w.instance)
	return true
}

// callWaiter hands the answer to the goroutine that waits in send.
type callWaiter struct {
	s                    *Socket
	method, id, instance string
	refused              func(*RemoteError)
	done                 chan callResult // has room for the one result
}

type callResult struct {
	answer *Answer
	retry  time.Duration
	err    error
}

func (w *callWaiter) failed(err error) { w.done <- callResult{err: err} }

func (w *callWaiter) dropped() {
	if w.s.forget(w.id, w.instance) {
		w.failed(ErrDropped)
	}
}

func (w *callWaiter) answered(b *buffer.Buffer, f *envelope.Frame) {
	r := w.judge(b, f)
	if r.answer == nil {
		discard(b)
	}
	if refusal, ok := r.err.(*RemoteError); ok && w.refused != nil {
		w.s.guard(func() { w.refused(refusal) })
	}
	w.done <- r
}

// judge checks an answer in the order of TypedRequest 8: its envelope, then
// retry, then error (typedsocket.md §1.3).
func (w *callWaiter) judge(b *buffer.Buffer, f *envelope.Frame) callResult {
	peer := w.s.cfg.Peer
	invalid := func(rule string) callResult {
		return callResult{err: &AnswerError{Peer: peer, Method: w.method, Rule: rule}}
	}
	if f.Response == nil {
		return invalid("it has no member response")
	}
	text, data, state := envelope.ReadError(f.Error)
	if f.Error != nil && state != envelope.ErrorNamed {
		return invalid("its error is no object with a text")
	}
	if f.Retry != nil && string(f.Retry) != "null" {
		ms, _, err := envelope.ReadRetry(f.Retry)
		if err != nil {
			return invalid("its retry is not valid")
		}
		return callResult{retry: time.Duration(ms) * time.Millisecond}
	}
	if state == envelope.ErrorNamed {
		return callResult{err: &RemoteError{Peer: peer, Method: w.method, Text: text, Data: append([]byte(nil), data...)}}
	}
	return callResult{answer: &Answer{buf: b, response: f.Response, facts: f.Body}}
}
