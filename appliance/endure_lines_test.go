package appliance

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// dialer has the form of the seam.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// lines are the connections that one side opens. They are counted, and can be
// spoiled as a network spoils them.
type lines struct {
	begun time.Time
	idle  time.Duration // a middlebox cuts what rests for so long; 0 for none
	rate  int           // bytes a second that a connection sends; 0 for any number

	mu     sync.Mutex
	dials  []time.Duration // when each was begun
	lasted []time.Duration // from the dial to its failure or the close, in the order of the ends
	open   map[*line]bool  // being dialled, or not closed yet
	most   int             // the most of them at once
}

func newLines() *lines { return &lines{begun: time.Now(), open: map[*line]bool{}} }

// through has a dialer's connections counted.
func (l *lines) through(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c := &line{of: l, since: time.Since(l.begun), closed: make(chan struct{})}
		l.mu.Lock()
		l.dials = append(l.dials, c.since)
		l.open[c] = true
		l.most = max(l.most, len(l.open))
		l.mu.Unlock()
		conn, err := dial(ctx, network, address)
		if err != nil {
			c.gone()
			return nil, err
		}
		c.Conn = conn
		c.stir()
		return c, nil
	}
}

// dialled returns when each dial was begun.
func (l *lines) dialled() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.dials)
}

// counts returns how many connections there are and the most there were at once.
func (l *lines) counts() (open, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open), l.most
}

// stood returns how long each connection lasted that is over.
func (l *lines) stood() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lasted)
}

// unplug has what crosses the standing connections vanish, both ways, so that
// neither end is told.
func (l *lines) unplug() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		c.mu.Lock()
		c.unplugged = true
		c.mu.Unlock()
	}
}

// line is one connection, at the side that dialled it.
type line struct {
	net.Conn
	of     *lines
	since  time.Duration
	closed chan struct{}
	once   sync.Once

	mu        sync.Mutex
	unplugged bool
	rest      *time.Timer // closes both ends; nil while there is no middlebox
}

func (c *line) lost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unplugged
}

// stir tells the middlebox that something crossed.
func (c *line) stir() {
	if c.of.idle == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest == nil {
		c.rest = time.AfterFunc(c.of.idle, func() { c.Conn.Close() })
	}
	c.rest.Reset(c.of.idle)
}

func (c *line) Write(p []byte) (int, error) {
	if c.lost() {
		return len(p), nil
	}
	c.stir()
	if c.of.rate > 0 {
		time.Sleep(time.Duration(len(p)) * time.Second / time.Duration(c.of.rate))
	}
	return c.Conn.Write(p)
}

func (c *line) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		switch {
		case !c.lost():
			c.stir()
			return n, err
		case errors.Is(err, os.ErrDeadlineExceeded):
			select {
			case <-c.closed:
				return 0, net.ErrClosed
			default:
				return 0, err
			}
		case err != nil: // the end of the other side does not cross either
			<-c.closed
			return 0, net.ErrClosed
		}
	}
}

func (c *line) Close() error {
	c.gone()
	c.mu.Lock()
	if c.rest != nil {
		c.rest.Stop()
	}
	c.mu.Unlock()
	if c.lost() {
		return c.Conn.SetReadDeadline(time.Now()) // the other end hears nothing of it
	}
	return c.Conn.Close()
}

// gone counts the end.
func (c *line) gone() {
	c.once.Do(func() {
		close(c.closed)
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		delete(c.of.open, c)
		c.of.lasted = append(c.of.lasted, time.Since(c.of.begun)-c.since)
	})
}

// nominal is the wait before the next attempt after this many failures in a row,
// without its jitter (contract §5.8).
func nominal(failures int) time.Duration {
	wait := time.Second
	for ; failures > 1 && wait < time.Minute; failures-- {
		wait *= 2
	}
	return min(wait, time.Minute)
}

// wantBackoff checks the distances of dials in a row, the first of which had
// failures before it: at least half of the nominal wait, and no more than the
// whole and what an attempt itself takes.
func wantBackoff(t *testing.T, dials []time.Duration, failures int, attempt time.Duration) {
	t.Helper()
	for i := 1; i < len(dials); i++ {
		gap, want := dials[i]-dials[i-1], nominal(failures+i)
		if gap < want/2 || gap > want+attempt {
			t.Fatalf("dial %d came %s after the one before, want %s to %s", i+1, gap, want/2, want+attempt)
		}
	}
}

// spreadOf returns the first and the last of some instants, and the least distance
// of two.
func spreadOf(at []time.Duration) (first, last, apart time.Duration) {
	if len(at) == 0 {
		return 0, 0, 0
	}
	at = slices.Sorted(slices.Values(at))
	apart = at[len(at)-1] - at[0]
	for i := 1; i < len(at); i++ {
		apart = min(apart, at[i]-at[i-1])
	}
	return at[0], at[len(at)-1], apart
}

// busiest returns the most instants within a window, wherever it begins.
func busiest(at []time.Duration, window time.Duration) (most int) {
	at = slices.Sorted(slices.Values(at))
	for i, j := 0, 0; i < len(at); i++ {
		for at[i]-at[j] >= window {
			j++
		}
		most = max(most, i-j+1)
	}
	return most
}

// unevenness is chi-square of the instants in ten equal parts of a time, against an
// even spread. One in a thousand even spreads passes 27.9.
func unevenness(at []time.Duration, from, to time.Duration) (chi float64) {
	const parts = 10
	var counts [parts]float64
	all := 0.0
	for _, t := range at {
		if t >= from && t < to {
			counts[int(parts*(t-from)/(to-from))]++
			all++
		}
	}
	for _, n := range counts {
		chi += (n - all/parts) * (n - all/parts) / (all / parts)
	}
	return chi
}
