package control

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// MaximumWait bounds every wait that is asked for. It is below the time after which a
// relay takes a peer for dead, so that a wait is a delay and nothing worse.
const MaximumWait = 10 * time.Second

// Points are the failpoints of a process. All methods are safe for concurrent use.
type Points struct {
	names []string

	mu     sync.Mutex // guards what follows
	places map[string]*place
	conns  map[string][]*conn // open ones, oldest first
	offset time.Duration
	test   net.Conn // nil while nobody asks

	writing sync.Mutex // held while a line is written
}

// place is where goroutines are to wait.
type place struct {
	hits  int // that are still to wait
	most  time.Duration
	freed chan struct{} // closed by release
}

// New returns points of these names at which nothing happens.
func New(names ...string) *Points {
	return &Points{names: names, places: map[string]*place{}, conns: map[string][]*conn{}}
}

// known refuses a name that there is not.
func (p *Points) known(name string) error {
	if !slices.Contains(p.names, name) {
		return fmt.Errorf("there is no failpoint %q", name)
	}
	return nil
}

// Reach waits when that was asked for of this place.
func (p *Points) Reach(name string) {
	p.mu.Lock()
	at := p.places[name]
	if at == nil || at.hits == 0 {
		p.mu.Unlock()
		return
	}
	at.hits--
	most, freed, test := at.most, at.freed, p.test
	p.mu.Unlock()
	if test != nil {
		p.say(test, reachedWord+" "+name)
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-freed:
	case <-timer.C:
	}
}

func (p *Points) hold(name string, hits int, most time.Duration) error {
	if err := p.known(name); err != nil {
		return err
	}
	if hits < 1 || most <= 0 || most > MaximumWait {
		return fmt.Errorf("hold at least one, for at most %s", MaximumWait)
	}
	p.release(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places[name] = &place{hits: hits, most: most, freed: make(chan struct{})}
	return nil
}

func (p *Points) release(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.places[name]; at != nil {
		close(at.freed)
		delete(p.places, name)
	}
	return p.known(name)
}

// Now returns a reading of the wall clock as it was set.
func (p *Points) Now(wall time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.offset == 0 {
		return wall
	}
	// A clock that was set has no monotonic reading in common with the one before.
	return wall.Round(0).Add(p.offset)
}

func (p *Points) set(offset time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offset = offset
}

// pick returns the connections that are meant.
func (p *Points) pick(name string, w which) ([]*conn, error) {
	if err := p.known(name); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	open := p.conns[name]
	switch {
	case len(open) == 0:
		return nil, fmt.Errorf("no connection %s is open", name)
	case w.all:
		return slices.Clone(open), nil
	}
	return []*conn{open[w.number%len(open)]}, nil
}

// mend has no connection of a name break any more.
func (p *Points) mend(name string) error {
	p.mu.Lock()
	open := slices.Clone(p.conns[name])
	p.mu.Unlock()
	for _, c := range open {
		c.mend()
	}
	return p.known(name)
}

// forget undoes everything, for nobody asks any more.
func (p *Points) forget() {
	p.mu.Lock()
	p.test, p.offset = nil, 0
	var all []*conn
	for _, open := range p.conns {
		all = append(all, open...)
	}
	for name, at := range p.places {
		close(at.freed)
		delete(p.places, name)
	}
	p.mu.Unlock()
	for _, c := range all {
		c.stall(time.Time{})
		c.mend()
	}
}
