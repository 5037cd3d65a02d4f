package duty

import (
	"sync/atomic"
	"time"
)

// Counter counts things that happened. The zero value is at 0.
type Counter struct{ n atomic.Uint64 }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n.
func (c *Counter) Add(n uint64) { c.n.Add(n) }

// Value returns the count.
func (c *Counter) Value() uint64 { return c.n.Load() }

func (c *Counter) read() float64 { return float64(c.n.Load()) }

// Gauge is a number that goes up and down. The zero value is at 0.
type Gauge struct{ n atomic.Int64 }

// Set sets the number.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Add adds n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Value returns the number.
func (g *Gauge) Value() int64 { return g.n.Load() }

func (g *Gauge) read() float64 { return float64(g.n.Load()) }

// Seconds counts time that was spent. The zero value is at 0.
type Seconds struct{ ns atomic.Int64 }

// Add adds d. A negative one is a clock's mistake and is left out, since a
// counter never goes back.
func (s *Seconds) Add(d time.Duration) {
	if d > 0 {
		s.ns.Add(int64(d))
	}
}

// Value returns the time counted.
func (s *Seconds) Value() time.Duration { return time.Duration(s.ns.Load()) }

func (s *Seconds) read() float64 { return time.Duration(s.ns.Load()).Seconds() }
