package duty

import (
	"sync"
	"time"
)

// budget bounds how often one line may be written: burst at once, then one
// each interval.
type budget struct {
	burst    int
	interval time.Duration
}

var (
	// ownBudget lets the largest cluster's nodes (256) do four things at once
	// and one of them every 20 ms ever after. A peer that causes a line with
	// each of its frames costs at most 50 lines a second.
	ownBudget = budget{burst: 1024, interval: 20 * time.Millisecond}

	// foreignBudget is for lines whose cause we do not know, such as scanners
	// that fail a TLS handshake: enough to see that it happens.
	foreignBudget = budget{burst: 10, interval: 10 * time.Second}
)

// maxBudgets bounds how many messages have a budget of their own. Messages
// are constants of the program, of which there are fewer; what comes later
// shares one budget.
const maxBudgets = 512

// bucket is the state of one budget. The zero value is full.
type bucket struct {
	spent      int       // tokens taken and not yet given back
	since      time.Time // when the next token began to grow, if any is spent
	suppressed uint64    // refused since the last one that was let through
}

// take takes a token at the instant now and returns how many lines were
// suppressed before this one; ok is false if there was no token.
func (b *bucket) take(now time.Time, limit budget) (ok bool, suppressed uint64) {
	if grown := int(now.Sub(b.since) / limit.interval); grown > 0 {
		b.spent = max(0, b.spent-grown)
		b.since = b.since.Add(time.Duration(grown) * limit.interval)
	}
	if b.spent == 0 {
		b.since = now
	}
	if b.spent >= limit.burst {
		b.suppressed++
		return false, 0
	}
	b.spent++
	suppressed, b.suppressed = b.suppressed, 0
	return true, suppressed
}

// budgets has a bucket for each message.
type budgets struct {
	limit budget

	mu      sync.Mutex
	buckets map[string]*bucket // guarded by mu
}

func newBudgets(limit budget) *budgets {
	return &budgets{limit: limit, buckets: map[string]*bucket{}}
}

// take takes a token of the message's bucket.
func (s *budgets) take(message string, now time.Time) (ok bool, suppressed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[message]
	if b == nil {
		if len(s.buckets) >= maxBudgets {
			message = ""
		}
		if b = s.buckets[message]; b == nil {
			b = new(bucket)
			s.buckets[message] = b
		}
	}
	return b.take(now, s.limit)
}
