package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// sender is a member of the hub, as a sender and as a receiver: one that was replaced, by
// another key, is another.
type sender struct{ member, life int }

// way is a direction in which packets go.
type way struct{ from, to sender }

// law is which ways are open. It never changes.
type law map[way]bool

// laws are the networks that the hub was given, one after the other, as far as a packet
// is judged by them. When an apply was answered idle, nothing leaves any more that its
// network forbids (design §5.4): so a packet was let pass by one of the laws from the
// last that was settled before it can have left, up to the last that had begun when it
// arrived.
type laws struct {
	mu      sync.Mutex
	all     []law
	settled int            // in force, and none before it is
	fences  map[sender]int // by receiver: a law that was settled before whatever arrives from now on has left
	found   map[string]int
	passed  map[way]int // packets that arrived, and had to be let pass
}

func newLaws() *laws {
	return &laws{all: []law{{}}, fences: map[sender]int{}, found: map[string]int{}, passed: map[way]int{}}
}

// begin notes a law that may be in force from now on, and returns its number.
func (l *laws) begin(next law) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, maps.Clone(next))
	return len(l.all) - 1
}

// settle notes that none before this one is in force any more.
func (l *laws) settle(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = max(l.settled, number)
}

// stamp is what a packet bears that is sent now: the law that is settled.
func (l *laws) stamp() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled
}

// fence notes that a packet reached a member which was sent under a law, settled then,
// and which is let pass by all laws. Whatever comes behind it left behind it.
func (l *laws) fence(at sender, stamp int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fences[at] = max(l.fences[at], stamp)
}

// fenced reports whether such a packet has come to a member.
func (l *laws) fenced(at sender, number int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fences[at] >= number
}

// arrived judges a packet that has come, which was sent under a stamp.
func (l *laws) arrived(w way, stamp int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed[w]++
	first := max(stamp, l.fences[w.to])
	if first >= len(l.all) {
		l.found[fmt.Sprintf("hub: a packet from member %d to member %d bears the number of a law that has not begun", w.from.member, w.to.member)]++
		return
	}
	for _, x := range l.all[first:] {
		if x[w] {
			return
		}
	}
	l.found[fmt.Sprintf("hub: a packet from member %d (life %d) to member %d (life %d) came, which no law from %d to %d lets pass",
		w.from.member, w.from.life, w.to.member, w.to.life, first, len(l.all)-1)]++
}

// fault notes something else that is wrong with a packet.
func (l *laws) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found["hub: "+fmt.Sprintf(format, args...)]++
}

// count is how many packets have gone a way.
func (l *laws) count(w way) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed[w]
}

// total is how many packets have come.
func (l *laws) total() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, count := range l.passed {
		n += count
	}
	return n
}

// faults are what is wrong so far.
func (l *laws) faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for what, times := range l.found {
		found = append(found, fmt.Sprintf("%s (%d times)", what, times))
	}
	slices.Sort(found)
	return found
}
