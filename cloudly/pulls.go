package cloudly

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"serve.zone/relay/typedsocket"
)

// pull fetches one thing from Cloudly on the socket of the session.
type pull func(ctx context.Context, sock *typedsocket.Socket) error

// errOvertaken is a pull whose answer is out of date. It is run again at once and
// has not failed.
var errOvertaken = errors.New("overtaken")

// pulls runs the pulls of one socket: each by itself, so that one that waits holds
// up no other, and none beside itself. A pull that failed is tried again, ever
// less often, for as long as the pulls are not ended.
type pulls struct {
	sock   *typedsocket.Socket
	failed func(err error, failures int) // is told of each failure

	cancel context.CancelFunc
	ctx    context.Context
	tasks  []*task
	active atomic.Int32 // pulls that are being run
	ended  sync.WaitGroup
}

// task is one pull.
type task struct {
	run       pull
	again     chan struct{} // has room for one
	overtaken atomic.Int32  // runs in a row whose answer was out of date
}

// startPulls starts a goroutine for each pull, which waits to be told.
func startPulls(ctx context.Context, sock *typedsocket.Socket, all []pull, failed func(error, int)) *pulls {
	p := &pulls{sock: sock, failed: failed}
	p.ctx, p.cancel = context.WithCancel(ctx)
	for _, run := range all {
		t := &task{run: run, again: make(chan struct{}, 1)}
		p.tasks = append(p.tasks, t)
		p.ended.Go(func() { p.serve(t) })
	}
	return p
}

// again has one pull run, after the run in progress when there is one.
func (p *pulls) again(i int) { p.tasks[i].wake() }

// overtaken has a pull run again whose answer was out of date when it was looked at,
// used says that one was not.
func (p *pulls) overtaken(i int) {
	p.tasks[i].overtaken.Add(1)
	p.again(i)
}

func (p *pulls) used(i int) { p.tasks[i].overtaken.Store(0) }

func (t *task) wake() {
	select {
	case t.again <- struct{}{}:
	default:
	}
}

// serve runs a pull each time it is told to, and until it succeeds.
func (p *pulls) serve(t *task) {
	for failures := 0; ; {
		var retry <-chan time.Time
		var timer *time.Timer
		if failures > 0 {
			timer = time.NewTimer(backoff(failures, rand.Float64()))
			retry = timer.C
		}
		select {
		case <-p.ctx.Done():
		case <-t.again:
			failures = 0
			p.pause(t)
		case <-retry:
		}
		if timer != nil {
			timer.Stop()
		}
		if p.ctx.Err() != nil {
			return
		}
		p.active.Add(1)
		err := t.run(p.ctx, p.sock)
		p.active.Add(-1)
		switch {
		case err == nil:
			failures = 0
		case errors.Is(err, errOvertaken):
			failures = 0
			t.overtaken.Add(1)
			t.wake()
		case p.ctx.Err() == nil:
			failures++
			p.failed(err, failures)
		}
	}
}

// overtakings is how often in a row a pull is run again at once. A Cloudly that
// pushes for each pull would have it run for ever otherwise.
const overtakings = 3

// pause waits before a pull that was overtaken too often.
func (p *pulls) pause(t *task) {
	n := int(t.overtaken.Load()) - overtakings
	if n <= 0 {
		return
	}
	timer := time.NewTimer(backoff(n, rand.Float64()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

// busy reports whether a pull is being run.
func (p *pulls) busy() bool { return p.active.Load() > 0 }

// end ends all pulls and reports whether they were gone within pullWait.
func (p *pulls) end() bool {
	p.cancel()
	gone := make(chan struct{})
	go func() { defer close(gone); p.ended.Wait() }()
	timer := time.NewTimer(pullWait)
	defer timer.Stop()
	select {
	case <-gone:
		return true
	case <-timer.C:
		return false
	}
}
