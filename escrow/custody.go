package escrow

import (
	"context"
	"time"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// DropCustody drops all that is held (contract §6.2, §9.6). When it returns, nothing
// of it leaves any more: no push begins, those under way have ended, and sockets on
// which one may still wait to be written have been cut. why is the name of the
// refusal that ended custody. It waits a second at most, for pushes that do not
// return when their context ends.
func (e *Escrow) DropCustody(why string) {
	e.mu.Lock()
	e.machine.drop(e.now(), why)
	e.withdraw()
	under := make([]*flight, 0, len(e.flights))
	for _, f := range e.flights {
		under = append(under, f)
	}
	unread := e.unread
	e.unread = map[*typedsocket.Socket]struct{}{}
	e.mu.Unlock()

	// A push between its last look at its context and the socket's queue is not
	// reached by the context any more; and one whose time was up may wait in the
	// queue of a peer that does not read.
	for s := range unread {
		s.Cut(typedsocket.CloseCustodyEnded, "the relay no longer holds this cluster")
	}
	if left := await(under); left > 0 {
		e.step(func(m *machine, _ instant) { m.tell(PushStuck, field.Count(left)) })
	}
	e.publish()
	signal(e.wake)
}

// await waits for pushes to return and tells how many have not in time.
func await(under []*flight) (left int) {
	timer := time.NewTimer(dropWait)
	defer timer.Stop()
	for i, f := range under {
		select {
		case <-f.done:
		case <-timer.C:
			return len(under) - i
		}
	}
	return 0
}

// Quiesce tells that the relay is about to end: no push begins any more and holds
// are refused. It does not wait.
func (e *Escrow) Quiesce() { e.step(func(m *machine, at instant) { m.drain(at) }) }

// Drain does what Quiesce does, and waits for the pushes in flight. When ctx ends
// first, it ends theirs and returns the context's error.
func (e *Escrow) Drain(ctx context.Context) error {
	e.Quiesce()
	for {
		e.mu.Lock()
		left := len(e.flights)
		e.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-e.landed:
		case <-ctx.Done():
			e.mu.Lock()
			for _, f := range e.flights {
				f.cancel()
			}
			e.mu.Unlock()
			return ctx.Err()
		}
	}
}
