package hub

import (
	"context"
	"sync"
	"time"

	"serve.zone/relay/hub/tunnel"
)

// Quiesce tells that the relay is about to end: no handshake succeeds any more and
// networks are refused. Packets still pass. It does not wait.
func (h *Hub) Quiesce() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
}

// Drain does what Quiesce does, tells every member to dial again soon, and closes
// its connection when it had the time to read that. When ctx ends first they are
// closed at once; that is no error, since nothing is lost that the close does not
// say too.
func (h *Hub) Drain(ctx context.Context) error {
	h.Quiesce()
	var over []leaver
	var all sync.WaitGroup
	for i := range h.routes {
		s := h.routes[i].Load()
		if s == nil {
			continue
		}
		over = append(over, leaver{s, endedDraining, tunnel.CloseDraining})
		if s.telling.CompareAndSwap(false, true) {
			all.Go(func() {
				// Nothing is told behind it (docs/tunnel.md §8). One that does not read it
				// learns the code from the close.
				s.stream.SetWriteDeadline(time.Now().Add(farewell))
				tunnel.WriteMessage(s.stream, tunnel.Close{Code: tunnel.CloseDraining, RetryAfter: retryAfter})
			})
		}
	}
	if len(over) > 0 {
		timer := time.NewTimer(farewell)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	all.Wait()
	endAll(over)
	h.mu.Lock()
	conns := h.others(nil)
	h.mu.Unlock()
	closeAll(conns, tunnel.CloseDraining)
	h.flush()
	return nil
}
