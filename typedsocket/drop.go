package typedsocket

import (
	"fmt"
	"time"

	"serve.zone/relay/typedsocket/queue"
)

// ErrDropped is what a call or a forward meets whose frame DropFlows took back.
// It matches ErrClosed: what was to leave on this socket never will.
var ErrDropped = fmt.Errorf("dropped before it left: %w", ErrClosed)

// dropped is who queued a frame in a flow and is told when DropFlows dropped it.
type dropped interface{ dropped() }

// DropFlows drops everything that is not this side's own: it aborts all streams
// and takes back every frame of a flow. A call or a forward whose frame it was
// fails as if the socket had ended, with ErrDropped; where it was a forwarded
// answer, the peer gets a failure in its place. Own frames go on.
//
// When it returns, no byte that a flow had queued is given to the connection any
// more, but for the rest of one character; what the kernel has already, it may
// still deliver. Who goes on queueing meanwhile must be stopped before.
//
// A large frame may be half written then. Finishing it would send on what was to
// be dropped, and cutting the socket would cost the own frames too. So its
// message is ended where it stands. What has left of it is a part of a JSON
// object and so no JSON, which a TypedRequest peer logs and ignores
// (typedsocket.md §1.5). One that ends the socket for it has lost no more than by
// a cut.
//
// Only a write in progress cannot be taken back: under TLS, a write that is
// interrupted is the connection's last. DropFlows waits a quarter of a second
// for the connection to take it. If it does not, the socket is cut, with this
// code and reason: a peer that does not read costs the socket, not the promise.
func (s *Socket) DropFlows(code CloseCode, reason string) {
	if s.streams != nil {
		s.streams.AbortAll(reason)
	}
	s.mu.Lock()
	var items []framed
	s.queue.DropFlows(func(item queue.Item) { items = append(items, framed{item, true}) })
	if len(items) > 0 {
		// Not on the caller's goroutine, who may hold a lock that a callback takes.
		// Frames were left, so the writer has yet to come to windUp, which waits.
		s.counts.dropped.Add(uint64(len(items)))
		s.tellers.Add(1)
		go s.tellDropped(items)
	}
	s.drops++
	passed := waitFor(&s.passed, s.carrying)
	s.mu.Unlock()
	if passed == nil {
		return
	}
	timer := time.NewTimer(dropWait)
	defer timer.Stop()
	select {
	case <-passed:
	case <-timer.C:
		s.Cut(code, reason)
	}
}

// tellDropped ends frames that DropFlows took out of the queue.
func (s *Socket) tellDropped(items []framed) {
	defer s.tellers.Done()
	for i := range items {
		s.guard(func() { items[i].end(false) })
	}
}

// carryingLocked notes whether the write that begins now has bytes of flows. The
// caller holds mu.
func (s *Socket) carryingLocked(flow bool) {
	s.carrying = flow
	if !flow {
		tell(&s.passed)
	}
}

// waitFor returns the channel that tell closes next, nil when there is nothing
// to wait for.
func waitFor(c *chan struct{}, wait bool) chan struct{} {
	if wait && *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// tell closes the channel that somebody waits on, if anybody does.
func tell(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}
