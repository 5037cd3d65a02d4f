package operator

import (
	"slices"
	"sync"
	"time"

	"serve.zone/relay/duty"
)

// ages remembers of one duty's checks since when each has been seen as it is, for
// those whose duty does not tell. It holds the checks of the last answer and no
// more.
type ages struct {
	start time.Time

	mu   sync.Mutex
	seen map[string]duty.Check // guarded by mu; nil before the first answer
}

func newAges(start time.Time) *ages { return &ages{start: start} }

// fill returns the checks with an age each. What is seen in the first answer
// counts from the start, since nobody has seen it otherwise.
func (a *ages) fill(checks []duty.Check, now time.Time) []duty.Check {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		now = a.start
	}
	checks = slices.Clone(checks)
	seen := make(map[string]duty.Check, len(checks))
	for i, c := range checks {
		if c.Since.IsZero() {
			c.Since = now
			c = c.After(a.seen[c.Name])
		}
		checks[i], seen[c.Name] = c, c
	}
	a.seen = seen
	return checks
}
