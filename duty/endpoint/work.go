package endpoint

import (
	"context"
	"sync"
)

// Work counts what is being served, for those who wait until nothing is. The zero
// value rests. It is safe for concurrent use; whether something may still begin is
// its owner's to decide, under a lock of its own.
type Work struct {
	mu      sync.Mutex
	running int
	rested  chan struct{} // closed when running is 0; nil while nobody waits
}

// Begin notes something that Rest waits for, End notes its end.
func (w *Work) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running++
}

// End notes the end of something that was begun.
func (w *Work) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	if w.running == 0 && w.rested != nil {
		close(w.rested)
		w.rested = nil
	}
}

// Rest waits until nothing runs any more and reports whether that came before the
// context's end.
func (w *Work) Rest(ctx context.Context) bool {
	w.mu.Lock()
	if w.running == 0 {
		w.mu.Unlock()
		return true
	}
	if w.rested == nil {
		w.rested = make(chan struct{})
	}
	rested := w.rested
	w.mu.Unlock()
	select {
	case <-rested:
		return true
	case <-ctx.Done():
		return false
	}
}
