package escrow

import (
	"context"
	"errors"
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// Run pushes what is due until ctx ends, and returns nil then, when all pushes have
// ended. It is called once.
func (e *Escrow) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var pushes sync.WaitGroup
	defer pushes.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-e.wake:
		}
		if wait, ok := e.turn(ctx, &pushes); ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// turn begins what is due and returns how long it is until something may be.
func (e *Escrow) turn(ctx context.Context, pushes *sync.WaitGroup) (time.Duration, bool) {
	e.mu.Lock()
	for _, p := range e.machine.tick(e.now()) {
		e.metrics.pushes.Inc()
		e.expect(p.binding.Socket)
		recalled := make(chan struct{})
		f := &flight{recall: sync.OnceFunc(func() { close(recalled) }), done: make(chan struct{})}
		var own context.Context
		own, f.cancel = context.WithTimeout(ctx, pushWait)
		e.flights[p] = f
		pushes.Go(func() { e.fly(own, recalled, p, f) })
	}
	e.withdraw()
	wake, ok := e.machine.wake()
	e.mu.Unlock()
	e.publish()
	return e.until(wake), ok
}

// expect notes that a socket may have a push to write, and forgets those that have
// none any more because they are gone. The caller holds mu.
func (e *Escrow) expect(s *typedsocket.Socket) {
	for other := range e.unread {
		select {
		case <-other.Done():
			delete(e.unread, other)
		default:
		}
	}
	if s != nil {
		e.unread[s] = struct{}{}
	}
}

// fly makes one push and tells the machine how it ended.
func (e *Escrow) fly(ctx context.Context, recalled <-chan struct{}, p *push, f *flight) {
	answer, err := e.push(ctx, recalled, p)
	close(f.done)
	f.cancel()
	how := outcomeOf(p, answer, err)
	e.mu.Lock()
	delete(e.flights, p)
	if how == outcomeAcknowledged || how == outcomeRefused || how == outcomeForeign {
		delete(e.unread, p.binding.Socket) // it wrote in order, so all of it has left
	}
	e.metrics.ended.Of(e.machine.ended(e.now(), p, how)).Inc()
	e.withdraw()
	e.mu.Unlock()
	e.publish()
	signal(e.wake)
	signal(e.landed)
}

// errPanicked stands for the answer of a push that panicked.
var errPanicked = errors.New("escrow: the push panicked")

// push makes one push. The body is composed around the bytes that came.
func (e *Escrow) push(ctx context.Context, recalled <-chan struct{}, p *push) (answer []byte, err error) {
	defer func() { e.cfg.Log.Recovered(recover(), field.Duty(Name)) }()
	err = errPanicked
	body := contract.ApplyDNSLeaseRenewalRequest{
		Session: p.binding.Session.Received, Signed: contract.SignedDNSLeaseRenewal{Received: p.signed},
	}.AppendJSON(nil)
	failpoint.Reach(failpoint.RenewalDue)
	return e.cfg.Push(ctx, recalled, p.binding, body)
}

// outcomeOf judges what a push came to. An answer counts only if it repeats exactly
// the renewal that was sent, whatever its status says (contract §9.5).
func outcomeOf(p *push, answer []byte, err error) outcome {
	var refused *typedsocket.RemoteError
	switch {
	case errors.Is(err, typedsocket.ErrClosed) && !errors.Is(err, typedsocket.ErrDropped):
		return outcomeSocketEnded
	case errors.As(err, &refused):
		return outcomeRefused
	case err != nil:
		return outcomeFailed
	}
	read, err := contract.ReadApplyDNSLeaseRenewalAnswer(answer)
	if err != nil || !read.Answers(p.renewal()) {
		return outcomeForeign
	}
	return outcomeAcknowledged
}

// renewal returns as much of the renewal that was sent as an answer is bound by.
func (p *push) renewal() contract.DNSLeaseRenewal {
	of := p.target.renewal
	return contract.DNSLeaseRenewal{Projection: of.Projection, Sequence: of.Sequence, Digest: of.Digest}
}
