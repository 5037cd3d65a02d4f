package simulate

import (
	"context"
	"fmt"
	"sync"
)

// watch wakes those who wait for a condition whenever something has changed.
type watch struct {
	mu      sync.Mutex
	changed chan struct{} // nil while nobody waits
}

// notify says that something has changed.
func (w *watch) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// next returns a channel that is closed at the next change. Who takes it before
// looking misses nothing.
func (w *watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// wait returns when the condition holds, or with an error that names what was
// waited for. The condition is called without a lock, after every change.
func (w *watch) wait(ctx context.Context, what string, condition func() bool) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultWait)
		defer cancel()
	}
	for {
		changed := w.next()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		}
	}
}
