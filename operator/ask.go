package operator

import (
	"context"
	"sync"
	"time"

	"serve.zone/relay/duty/field"
)

// question is what a duty is asked.
type question uint8

const (
	askedChecks question = iota
	askedStatus
	askedMetrics
	questions // how many there are
)

// String returns the question's name.
func (q question) String() string {
	return [questions]string{askedChecks: "checks", askedStatus: "status", askedMetrics: "metrics"}[q]
}

// fault is how a question was answered.
type fault uint8

const (
	answered     fault = iota
	panicked           // the duty panicked
	unresponsive       // it did not answer within askWait
	unusable           // what it answered cannot be shown
	faults             // how many there are
)

// String returns the fault's name.
func (f fault) String() string {
	return [faults]string{answered: "answered", panicked: "panicked", unresponsive: "unresponsive", unusable: "unusable"}[f]
}

// subject is a duty, or what one counts, and how it has answered so far.
type subject[S any] struct {
	value S
	name  string        // empty if not known
	turn  chan struct{} // of one: who may put a question

	mu   sync.Mutex
	last [questions]verdict // guarded by mu
}

// verdict is how a question was answered last.
type verdict struct {
	fault fault
	since time.Time // of the fault; zero while there is none
}

func newSubject[S any](value S, name string) *subject[S] {
	return &subject[S]{value: value, name: name, turn: make(chan struct{}, 1)}
}

// note records how a question was answered.
func (s *subject[S]) note(q question, f fault, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v := &s.last[q]; {
	case f == answered:
		*v = verdict{}
	case v.fault != f:
		*v = verdict{fault: f, since: now}
	}
}

// verdict returns how a question was answered last.
func (s *subject[S]) verdict(q question) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[q]
}

// reply is what one subject answered.
type reply[T any] struct {
	value T
	fault fault
}

// ask puts a question to every subject at once and returns their replies in
// order, after askWait at the latest. A panic costs the reply of its subject. A
// subject that hangs holds one goroutine, whoever asks after that: further ones
// wait for their turn and give up.
func ask[S, T any](o *Operator, q question, subjects []*subject[S], f func(S) (T, fault)) []reply[T] {
	ctx, cancel := context.WithTimeout(context.Background(), askWait)
	defer cancel()
	pending := make([]chan reply[T], len(subjects))
	for i, s := range subjects {
		pending[i] = make(chan reply[T], 1)
		go put(ctx, o, q, s, f, pending[i])
	}
	replies := make([]reply[T], len(subjects))
	for i, s := range subjects {
		replies[i] = await(ctx, pending[i])
		how := replies[i].fault
		s.note(q, how, o.cfg.Wall())
		o.metrics.questions.Of(q, how).Inc()
		if how == unresponsive {
			o.log.Error("duty-unresponsive", field.Duty(s.name), field.Reason(q.String()))
		}
	}
	return replies
}

// put puts the question to one subject.
func put[S, T any](ctx context.Context, o *Operator, q question, s *subject[S], f func(S) (T, fault), to chan<- reply[T]) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	r := reply[T]{fault: panicked}
	defer func() {
		o.log.Recovered(recover(), field.Duty(s.name), field.Reason(q.String()))
		<-s.turn
		to <- r
	}()
	r.value, r.fault = f(s.value)
}

// await waits for a reply until ctx ends. One that is there by then counts.
func await[T any](ctx context.Context, from <-chan reply[T]) reply[T] {
	select {
	case r := <-from:
		return r
	case <-ctx.Done():
	}
	select {
	case r := <-from:
		return r
	default:
		return reply[T]{fault: unresponsive}
	}
}
