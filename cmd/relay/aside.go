package main

import (
	"context"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

const (
	// waitingReloads is how many reloads wait behind one that runs: the one that
	// waits will read what is there then, for every signal until then.
	waitingReloads = 1
	// waitingNotices is how many notices there are in the life of a relay: that it
	// serves, and that it stops.
	waitingNotices = 2
	// asideWait is how long a clean end waits for what runs aside: a service
	// manager that is there takes a datagram at once.
	asideWait = time.Second
)

// asides is what may hang on the outside, each with a goroutine of its own, so
// that none keeps a signal from being heard or another from being done.
type asides struct {
	log     *duty.Logger
	notify  func(state string) error
	reload  func()
	notices *aside // for a service manager
	reloads *aside // which read a file system
}

// newAsides starts two goroutines, which end ends.
func newAsides(notify func(string) error, reload func(), log *duty.Logger) *asides {
	return &asides{
		log: log, notify: notify, reload: reload,
		notices: newAside(log, waitingNotices), reloads: newAside(log, waitingReloads),
	}
}

// tell tells the service manager a state, if there is one.
func (a *asides) tell(state string) {
	done := a.notices.do(func() {
		if err := a.notify(state); err != nil {
			a.log.Warn("service-manager-not-told", field.Error(err))
		}
	})
	if !done {
		a.log.Warn("service-manager-not-told", field.Reason("too-many-wait"))
	}
}

// readAgain has files read again.
func (a *asides) readAgain() {
	if !a.reloads.do(a.reload) {
		a.log.Info("reload-left-out", field.Reason("one-waits"))
	}
}

// end takes nothing more, and waits for what it has if it is asked to.
func (a *asides) end(wait bool) {
	close(a.notices.jobs)
	close(a.reloads.jobs)
	if !wait {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), asideWait)
	defer cancel()
	if !a.notices.ended(ctx) {
		a.log.Warn("service-manager-not-told", field.Reason("no-answer"))
	}
	if !a.reloads.ended(ctx) {
		a.log.Warn("reload-not-ended")
	}
}

// aside does jobs one after the other, on one goroutine that ends when jobs is
// closed and all of them are done. A job that hangs keeps it until the process
// ends.
type aside struct {
	jobs chan func()
	done chan struct{}
}

func newAside(log *duty.Logger, waiting int) *aside {
	a := &aside{jobs: make(chan func(), waiting), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		for job := range a.jobs {
			guarded(log, func() error { job(); return nil })
		}
	}()
	return a
}

// do has a job done. It never waits, and reports false when too many jobs do.
func (a *aside) do(job func()) bool {
	select {
	case a.jobs <- job:
		return true
	default:
		return false
	}
}

// ended waits for the last job until ctx ends, and reports whether it is done.
func (a *aside) ended(ctx context.Context) bool {
	select {
	case <-a.done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}
