package main

import (
	"time"

	"serve.zone/relay/duty"
)

const (
	// waitingJobs is how many jobs wait behind one that hangs. Further ones are
	// left out: a reload that waits already will read what is there then.
	waitingJobs = 4
	// asideWait is how long a clean end waits for jobs: a service manager that is
	// there takes a datagram at once.
	asideWait = time.Second
)

// aside does jobs, one after the other, that may hang on a file system or a
// service manager: those must not keep a signal from being heard. newAside starts
// one goroutine, which end ends.
type aside struct {
	jobs chan func()
	done chan struct{}
}

func newAside(log *duty.Logger) *aside {
	a := &aside{jobs: make(chan func(), waitingJobs), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		for job := range a.jobs {
			guarded(log, func() error { job(); return nil })
		}
	}()
	return a
}

// do has a job done, unless too many wait already. It never waits.
func (a *aside) do(job func()) {
	select {
	case a.jobs <- job:
	default:
	}
}

// end takes no more jobs, and waits for those that it has if it is asked to. A job
// that hangs keeps its goroutine: it ends with the process.
func (a *aside) end(wait bool) {
	close(a.jobs)
	if !wait {
		return
	}
	select {
	case <-a.done:
	case <-time.After(asideWait):
	}
}
