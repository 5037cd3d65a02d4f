package simulate

import "time"

// backoff is how long to wait before the next attempt: doubling from first to
// last, the second half of each wait random, so that many nodes that lost one
// relay do not come back at one instant.
type backoff struct {
	first, last time.Duration
	random      func() float64
	failures    int
}

// next returns the wait after one more failure. It is never above last.
func (b *backoff) next() time.Duration {
	wait := b.last
	if doubled := b.first << min(b.failures, 62); doubled>>min(b.failures, 62) == b.first {
		wait = min(doubled, b.last)
	}
	b.failures++
	half := wait / 2
	return half + time.Duration(b.random()*float64(wait-half))
}

// stood resets the wait after a session that had stood for a while. One that
// died at once is one more failure.
func (b *backoff) stood(d time.Duration) {
	if d >= stableAfter {
		b.failures = 0
	}
}
