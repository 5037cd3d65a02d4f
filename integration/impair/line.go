package impair

import (
	"slices"
	"sync"
	"time"
)

// line carries the datagrams of one direction, each when it is due. Its goroutine alone
// sends, so that the order is the schedule's.
type line struct {
	direction Direction
	seed      uint64
	send      func(x parcel) (Reason, bool) // reports whether it passed
	wake      chan struct{}                 // another one leaves next; has room for one

	mu sync.Mutex // guards what follows; a leaf
	counters
	path     Path
	schedule schedule
	sending  int // 1 while one is being sent
	closed   bool
}

func newLine(d Direction, seed uint64, p Path, send func(parcel) (Reason, bool)) *line {
	return &line{direction: d, seed: seed, path: p, send: send, wake: make(chan struct{}, 1)}
}

func (l *line) set(p Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path = p
}

// refuse drops a datagram that is not the path's to decide about.
func (l *line) refuse(why Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.came++
	l.drop(why)
}

// offer decides about the n-th datagram of a flow, of which it keeps a copy. It never waits.
func (l *line) offer(f *flow, n uint64, datagram []byte, dark bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.came++
	d := l.path.Decide(l.seed, l.direction, f.number, n)
	switch {
	case l.closed:
		l.drop(Closed)
		return
	case dark:
		l.drop(Blackout)
		return
	case l.path.MaxDatagram > 0 && len(datagram) > l.path.MaxDatagram:
		l.drop(TooLarge)
		return
	case d.Lost:
		l.drop(Lost)
		return
	}
	at, ok := l.schedule.departure(l.path, d, len(datagram), now)
	if !ok {
		l.drop(BufferFull)
		return
	}
	b := slices.Clone(datagram)
	d.invert(b)
	if !l.schedule.add(f, b, at) {
		l.drop(QueueFull)
		return
	}
	if d.Corrupted {
		l.corrupted++
	}
	if d.Held {
		l.reordered++
	}
	if d.Copied {
		l.duplicated++
		if !l.schedule.add(f, b, at.Add(d.CopyLater)) {
			l.drop(QueueFull)
		}
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run sends what is due until done is closed.
func (l *line) run(done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		in, waits := l.sendDue()
		if waits && in == 0 {
			select {
			case <-done:
				l.close()
				return
			default:
				continue
			}
		}
		var due <-chan time.Time
		if waits {
			timer.Reset(in)
			due = timer.C
		}
		select {
		case <-done:
			l.close()
			return
		case <-l.wake:
		case <-due:
		}
	}
}

// sendDue sends the next one that is due, or says how long that takes.
func (l *line) sendDue() (in time.Duration, waits bool) {
	l.mu.Lock()
	x, in, waits := l.schedule.due(time.Now())
	if !waits || in > 0 {
		l.mu.Unlock()
		return in, waits
	}
	l.sending = 1
	l.mu.Unlock()
	why, ok := l.send(x)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending = 0
	if ok {
		l.passed++
	} else {
		l.drop(why)
	}
	return 0, true
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.dropped[Closed] += uint64(l.schedule.clear())
}

func (l *line) read() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counters.read()
	c.Waiting = l.schedule.queue.Len() + l.sending
	return c
}
