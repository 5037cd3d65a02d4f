package ingress

import (
	"context"
	"fmt"
)

// Drain refuses whatever comes from now on, waits for what is in flight, and
// zeroes the table. Hints that wait for an answer are given up. When ctx ends
// first, what is in flight is given up too, and the error says so. It closes no
// socket: the listener does.
func (i *Ingress) Drain(ctx context.Context) error {
	i.mu.Lock()
	i.draining = true
	crew := i.crew
	for _, p := range i.peers {
		p.giveUp()
	}
	i.mu.Unlock()

	done := make(chan struct{})
	go func() {
		defer close(done)
		crew.running.Wait()
		i.workers.Wait()
	}()
	var cut error
	select {
	case <-done:
	case <-ctx.Done():
		cut = fmt.Errorf("ingress: drain: %w", ctx.Err())
		crew.cancel()
		<-done
	}
	i.mu.Lock()
	table := i.table
	i.table = nil
	idle := i.discard(table)
	i.mu.Unlock()
	if idle {
		table.zero()
	}
	i.rest()
	i.flush()
	return cut
}
