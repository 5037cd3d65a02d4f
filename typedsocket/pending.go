package typedsocket

import (
	"time"

	"serve.zone/relay/typedsocket/buffer"
	"serve.zone/relay/typedsocket/envelope"
	"serve.zone/relay/typedsocket/queue"
)

// waiter is who waits for an answer. Exactly one of its methods is called,
// once, without a socket's lock held; neither may block.
type waiter interface {
	// answered hands over the answer. The buffer belongs to the waiter; the
	// frame is good until the call returns.
	answered(b *buffer.Buffer, f *envelope.Frame)
	// failed says that no answer will come.
	failed(err error)
}

// waiting is one entry of a socket's table of calls without an answer.
type waiting struct {
	waiter
	method   string
	instance string
	timer    *time.Timer
}

func (w waiting) stop() { w.timer.Stop() }

// outgoing is a request about to leave.
type outgoing struct {
	method       string
	id, instance string
	flow         string
	item         queue.Item
	timeout      time.Duration
	waiter       waiter
}

// submit queues a request and enters it into the table, or does neither.
func (s *Socket) submit(o outgoing) error {
	s.mu.Lock()
	if s.end != nil {
		s.mu.Unlock()
		return s.end
	}
	if len(s.pending) >= s.limits.Pending {
		s.mu.Unlock()
		s.counts.pendingFull.Add(1)
		return ErrPendingFull
	}
	if err := s.pushLocked(o.flow, o.item); err != nil {
		s.mu.Unlock()
		return err
	}
	id, instance, timeout := o.id, o.instance, o.timeout // the closure must not keep the rest
	timer := time.AfterFunc(timeout, func() { s.expire(id, instance, timeout) })
	s.pending[o.id] = waiting{waiter: o.waiter, method: o.method, instance: o.instance, timer: timer}
	s.mu.Unlock()
	s.wakeWriter()
	return nil
}

// expire ends a wait whose time is up, unless it has been answered meanwhile.
func (s *Socket) expire(id, instance string, after time.Duration) {
	s.mu.Lock()
	w, ok := s.pending[id]
	if !ok || w.instance != instance {
		s.mu.Unlock()
		return
	}
	delete(s.pending, id)
	s.mu.Unlock()
	s.counts.timeouts.Add(1)
	w.failed(&TimeoutError{Peer: s.cfg.Peer, Method: w.method, After: after})
}

// forget takes a wait out of the table without telling the waiter. It reports
// whether it was there.
func (s *Socket) forget(id, instance string) bool {
	s.mu.Lock()
	w, ok := s.pending[id]
	ok = ok && w.instance == instance
	if ok {
		delete(s.pending, id)
	}
	s.mu.Unlock()
	if ok {
		w.stop()
	}
	return ok
}

// answered gives an answer to who waits for it. An answer belongs to a wait
// when method, correlation id and instance id are all three the same
// (typedsocket.md §1.1); anything else matches nothing and is counted.
func (s *Socket) answered(b *buffer.Buffer, f *envelope.Frame) {
	w, ok := s.claim(f)
	if !ok {
		discard(b)
		return
	}
	if size, limit := b.Len(), s.readFrame; size > limit {
		s.counts.tooBig.Add(1)
		discard(b)
		w.failed(&TooBigError{Peer: s.cfg.Peer, Method: w.method, Size: size, Limit: limit})
		return
	}
	w.answered(b, f)
}

// failMalformed fails whoever waits for an answer whose body breaks a rule for names
// and strings, rather than leave it waiting for its time to be up.
func (s *Socket) failMalformed(b *buffer.Buffer, f *envelope.Frame, fault *envelope.ScanError) {
	w, ok := s.claim(f)
	discard(b)
	if ok {
		w.failed(&AnswerError{Peer: s.cfg.Peer, Method: w.method, Rule: "it breaks the rule " + fault.Rule.String()})
	}
}

// claim takes the wait that an answer ends out of the table, and reports false,
// counted, for an answer that nobody waits for.
func (s *Socket) claim(f *envelope.Frame) (waiting, bool) {
	s.mu.Lock()
	w, ok := s.pending[string(f.ID)]
	ok = ok && w.method == string(f.Method) && s.sameInstance(w.instance, f.Instance)
	if ok {
		delete(s.pending, string(f.ID))
	}
	s.mu.Unlock()
	if !ok {
		s.counts.unmatched.Add(1)
		return waiting{}, false
	}
	w.stop()
	return w, true
}

// sameInstance compares instance ids. An answer without one counts as long as
// the peer has never sent one: it is a 3.x peer then (typedsocket.md §4.10).
func (s *Socket) sameInstance(want string, got []byte) bool {
	if got == nil {
		return !s.modern.Load()
	}
	return string(got) == want
}
