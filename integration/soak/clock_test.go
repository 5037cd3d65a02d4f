package soak_test

import (
	"sync"
	"time"

	"serve.zone/relay/duty/failpoint/control"
)

// clock is the wall clock that relay and nodes have in common. Cloudly keeps its own.
type clock struct {
	remote *control.Remote

	mu     sync.Mutex
	offset time.Duration
}

// now is what a node reads.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset).Round(0)
}

// step sets the clock of all by so much. Whoever goes ahead does so first the nodes, so
// that no node is behind the relay: what opens for the relay is open for them.
func (c *clock) step(by time.Duration) error {
	next := c.off() + by
	if by > 0 {
		c.set(next)
		return c.remote.Clock(next)
	}
	err := c.remote.Clock(next)
	c.set(next)
	return err
}

func (c *clock) off() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

func (c *clock) set(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = offset
}
