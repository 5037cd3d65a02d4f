package rig

import (
	"context"
	"fmt"
	"time"
)

const (
	// DefaultWait bounds every wait for something that a right relay does within
	// moments. It is generous, since the machine may be busy with other tests; it is
	// met only by what never comes.
	DefaultWait = 30 * time.Second

	// The pause between two looks grows from one to the other.
	firstPause = 2 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Soon returns a context that ends after DefaultWait, or with the test.
func (r *Rig) Soon() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), DefaultWait)
	r.t.Cleanup(cancel)
	return ctx
}

// Eventually asks until there is no error any more. It fails the test with the
// last one after DefaultWait, or as soon as the relay has ended by itself.
func (r *Rig) Eventually(what string, ask func() error) {
	r.t.Helper()
	r.Within(DefaultWait, what, ask)
}

// Within is Eventually with a limit of its own, for what has a limit in the
// contract. It always asks once more when the limit has passed.
func (r *Rig) Within(limit time.Duration, what string, ask func() error) {
	r.t.Helper()
	if err := r.poll(limit, ask); err != nil {
		r.t.Fatalf("wait for %s: %v", what, err)
	}
}

func (r *Rig) poll(limit time.Duration, ask func() error) error {
	deadline := time.Now().Add(limit)
	for pause := firstPause; ; pause = min(pause*3/2, lastPause) {
		late := !time.Now().Before(deadline)
		err := ask()
		if err == nil {
			return nil
		}
		if code, ended := r.endedByItself(); ended {
			return fmt.Errorf("%w (the relay has ended by itself with exit code %d)", err, code)
		}
		if late {
			return fmt.Errorf("%w (after %s)", err, limit)
		}
		time.Sleep(pause)
	}
}
