package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// account is a numbered message of one direction.
type account struct {
	node string
	n    int
}

// ledger is the account of what was sent in one direction, what the other end took, and
// what the sender was told. Numbers are never used twice: what is sent again is another
// message.
type ledger struct {
	direction string // for faults
	allowed   []string

	mu       sync.Mutex
	last     map[string]int
	closed   map[string]int   // up to which numbers all was judged
	late     map[account]bool // taken behind that
	open     map[account]bool // sent, and not over
	taken    map[account]int
	acked    map[account]bool
	told     map[string]int // by what the sender was told instead
	answered int
}

// newLedger returns an empty ledger. Allowed is what a sender may be told in place of
// an answer.
func newLedger(direction string, allowed ...string) *ledger {
	return &ledger{direction: direction, allowed: allowed, last: map[string]int{}, closed: map[string]int{}, late: map[account]bool{}, open: map[account]bool{},
		taken: map[account]int{}, acked: map[account]bool{}, told: map[string]int{}}
}

// send returns the next number of a node, which is on its way from now on.
func (l *ledger) send(node string) account {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[node]++
	a := account{node, l.last[node]}
	l.open[a] = true
	return a
}

// take notes that the other end has it.
func (l *ledger) take(a account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken[a]++
	if a.n <= l.closed[a.node] {
		l.late[a] = true
	}
}

// over notes what the sender was told, "" for an answer.
func (l *ledger) over(a account, told string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, a)
	if told == "" {
		l.acked[a] = true
		l.answered++
		return
	}
	l.told[told]++
}

// faults are what is wrong once nothing is on its way any more.
func (l *ledger) faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	say := func(format string, args ...any) {
		found = append(found, l.direction+": "+fmt.Sprintf(format, args...))
	}
	for a := range l.acked {
		if l.taken[a] == 0 {
			say("%d of %s was answered, and the other end has not taken it", a.n, a.node)
		}
	}
	for a, times := range l.taken {
		switch {
		case times != 1:
			say("%d of %s was taken %d times", a.n, a.node, times)
		case a.n < 1 || a.n > l.last[a.node]:
			say("%d of %s was taken, and %d were sent", a.n, a.node, l.last[a.node])
		}
	}
	for a := range l.late {
		say("%d of %s was taken long after it was over", a.n, a.node)
	}
	for a := range l.open {
		say("%d of %s is not over: neither an answer came nor an end", a.n, a.node)
	}
	for told, times := range l.told {
		if !slices.ContainsFunc(l.allowed, func(begins string) bool { return strings.HasPrefix(told, begins) }) {
			say("%d senders were told %q", times, told)
		}
	}
	slices.Sort(found)
	return found
}

// close forgets what was judged, so that it is not judged again and weighs nothing.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.taken)
	clear(l.acked)
	maps.Copy(l.closed, l.last)
}

// summary is one line for a person.
func (l *ledger) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := 0
	for _, n := range l.last {
		sent += n
	}
	return fmt.Sprintf("%d %s, %d answered, others told %v", sent, l.direction, l.answered, l.told)
}
