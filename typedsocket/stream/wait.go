package stream

import (
	"context"
	"fmt"
	"time"
)

// take makes the caller the one call in progress. Every take has a give.
func (s *Stream) take(d Direction) error {
	if s.direction != d {
		return s.m.wrap(ErrDirection)
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.busy {
		return s.m.wrap(ErrBusy)
	}
	s.busy = true
	return nil
}

func (s *Stream) give() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.busy = false
	if s.state == stateEnded {
		s.m.stats.Held -= s.in.drop(false)
	}
}

// wait lets the call in progress wait for a change, under the idle limit. It
// returns the context's error when that ended first. Mux.mu is held on entry
// and on return.
func (s *Stream) wait(ctx context.Context) error {
	s.waits = true
	s.since = time.Now()
	s.watch(s.m.cfg.IdleLimit)
	s.m.mu.Unlock()
	var err error
	select {
	case <-s.wake:
	case <-s.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.m.mu.Lock()
	s.waits = false
	return err
}

// watch starts the idle timer unless it runs. It is not reset with each bit of
// progress: it looks, when it fires, how long there was none.
func (s *Stream) watch(after time.Duration) {
	switch {
	case s.idleRuns || s.state == stateEnded:
		return
	case s.idle == nil:
		s.idle = time.AfterFunc(after, s.idled)
	default:
		s.idle.Reset(after)
	}
	s.idleRuns = true
}

func (s *Stream) idled() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.idleRuns = false
	if s.state == stateEnded || !s.waits {
		return
	}
	limit := s.m.cfg.IdleLimit
	if still := time.Since(s.since); still < limit {
		s.watch(limit - still)
		return
	}
	err := fmt.Errorf("%w (limit %s)", s.m.wrap(ErrIdle), limit)
	s.fail(OutcomeIdle, err, kindAbort, ReasonIdle)
}

// progressed tells the call that waits, if any, that the peer or the carrier
// moved something; it looks, and begins its wait anew. It takes no lock: the
// carrier may call it from anywhere.
func (s *Stream) progressed() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// over returns what a call on a stream that has ended returns.
func (s *Stream) over() error {
	if s.err != nil {
		return s.err
	}
	return s.m.wrap(ErrEnded)
}
