package soak_test

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// slot is one renewal of one node. Sequences are never used twice.
type slot struct {
	node     string
	sequence int64
}

// arrival is a renewal that reached a node.
type arrival struct {
	slot
	at      time.Time // by the clock that node and relay have in common
	refused error     // by the node
}

// held is a window that was handed to the relay.
type held struct{ opens, ends time.Time }

// slots is the account of the escrow.
type slots struct {
	mu           sync.Mutex
	windows      map[slot]held
	arrivals     []arrival
	released     map[slot]int // by the relay's own events, as the next two
	acknowledged map[slot]int
	behind       map[slot]bool // released again when it was acknowledged
	due          map[slot]bool // acknowledged before what has arrived was looked at last
	gone         map[slot]bool // custody ended when they had been handed over; true once all has arrived that was sent by then
	strayed      map[slot]string
}

func newSlots() *slots {
	return &slots{windows: map[slot]held{}, released: map[slot]int{}, acknowledged: map[slot]int{}, behind: map[slot]bool{}, due: map[slot]bool{},
		gone: map[slot]bool{}, strayed: map[slot]string{}}
}

func (s *slots) hand(x slot, w held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.windows[x] = w
}

func (s *slots) arrived(a arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals = append(s.arrivals, a)
	if s.gone[a.slot] {
		s.strayed[a.slot] = "reached"
	}
}

func (s *slots) release(x slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released[x]++
	s.strays(x, "was released to")
	if s.acknowledged[x] > 0 {
		s.behind[x] = true
	}
}

func (s *slots) acknowledge(x slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acknowledged[x]++
	s.strays(x, "was counted as acknowledged by")
}

// strays notes what the relay says of a slot that it does not hold any more. The caller
// holds mu.
func (s *slots) strays(x slot, what string) {
	if _, gone := s.gone[x]; gone {
		s.strayed[x] = what
	}
}

// drop notes that custody has ended: all that was handed over is gone.
func (s *slots) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.windows {
		if _, known := s.gone[x]; !known {
			s.gone[x] = false
		}
	}
}

// fence notes that whatever was sent before custody ended has arrived.
func (s *slots) fence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.gone {
		s.gone[x] = true
	}
}

// look begins a look at what has arrived, which what is acknowledged by now has.
func (s *slots) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.acknowledged {
		s.due[x] = true
	}
}

// served reports whether a node has taken a slot.
func (s *slots) served(x slot) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.arrivals, func(a arrival) bool { return a.slot == x && a.refused == nil })
}

// taken is how many slots were taken by their nodes.
func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	different := map[slot]bool{}
	for _, a := range s.arrivals {
		if a.refused == nil {
			different[a.slot] = true
		}
	}
	return len(different)
}

// faults are what is wrong with what was released (contract §9.5, R51, R97): a slot is
// served once, in its window. It is released again when Cloudly came back before it was
// sent, or the socket ended, or another session began, before the node's answer; not once
// the relay knows that the node has it, and not when custody has ended since (R20).
func (s *slots) faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	say := func(format string, args ...any) { found = append(found, "escrow: "+fmt.Sprintf(format, args...)) }
	times, highest := map[slot]int{}, map[string]int64{}
	for _, a := range s.arrivals {
		w, known := s.windows[a.slot]
		switch {
		case !known:
			say("%d reached %s, and was never handed over", a.sequence, a.node)
		case a.at.Before(w.opens):
			say("%d reached %s %s before its window opened", a.sequence, a.node, w.opens.Sub(a.at))
		case !a.at.Before(w.ends):
			say("%d reached %s %s after its window had ended", a.sequence, a.node, a.at.Sub(w.ends))
		}
		if a.refused != nil {
			say("%d was refused by %s: %v", a.sequence, a.node, a.refused)
		}
		if a.sequence < highest[a.node] {
			say("%d reached %s behind %d", a.sequence, a.node, highest[a.node])
		}
		highest[a.node] = max(highest[a.node], a.sequence)
		times[a.slot]++
	}
	for x, n := range times {
		if n > s.released[x] {
			say("%d reached %s %d times, and was released %d times", x.sequence, x.node, n, s.released[x])
		}
	}
	for x := range s.behind {
		say("%d was released to %s again when it was acknowledged", x.sequence, x.node)
	}
	for x, n := range s.acknowledged {
		if n > 1 {
			say("%d of %s was acknowledged %d times", x.sequence, x.node, n)
		}
	}
	for x, what := range s.strayed {
		say("%d %s %s, and custody had ended", x.sequence, what, x.node)
	}
	for x := range s.due {
		if times[x] == 0 {
			say("%d of %s was acknowledged, and has not reached it", x.sequence, x.node)
		}
	}
	slices.Sort(found)
	return found
}
