package impair

import (
	"container/heap"
	"time"
)

// schedule says when datagrams of one direction leave, and holds them until then. It knows
// no clock.
type schedule struct {
	queue parcels
	bytes int    // of all that wait, entries included
	taken uint64 // datagrams, copies included

	turn time.Time // when the last one leaves that kept its turn
	busy time.Time // until when Path.Rate is used up
}

// parcel is a datagram that leaves at a time.
type parcel struct {
	at     time.Time
	number uint64 // among those of one time the lower one leaves first
	flow   *flow
	bytes  []byte
}

func (x *parcel) cost() int { return len(x.bytes) + entryCost }

// parcels is a heap, the one that leaves next first.
type parcels []parcel

func (q parcels) Len() int      { return len(q) }
func (q parcels) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q parcels) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].number < q[j].number
}
func (q *parcels) Push(x any) { *q = append(*q, x.(parcel)) }
func (q *parcels) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = parcel{}
	*q = (*q)[:last]
	return x
}

// departure decides when a datagram of so many bytes leaves that comes now, or that it
// finds no room before the rate.
func (s *schedule) departure(p Path, d Decision, size int, now time.Time) (at time.Time, ok bool) {
	at = now
	if p.Rate > 0 {
		buffer := p.Buffer
		if buffer == 0 {
			buffer = defaultBuffer
		}
		begins := later(s.busy, now)
		if waiting := begins.Sub(now).Seconds() * float64(p.Rate); waiting+float64(size) > float64(buffer) {
			return at, false
		}
		s.busy = begins.Add(time.Duration(float64(size) / float64(p.Rate) * float64(time.Second)))
		at = s.busy
	}
	at = at.Add(d.Delay)
	if d.Held {
		return at.Add(p.ReorderBy), true
	}
	s.turn = later(s.turn, at)
	return s.turn, true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// add holds a datagram until it leaves, and reports whether there was room.
func (s *schedule) add(f *flow, b []byte, at time.Time) bool {
	x := parcel{at: at, number: s.taken, flow: f, bytes: b}
	if s.bytes+x.cost() > maxWaiting {
		return false
	}
	s.taken++
	s.bytes += x.cost()
	heap.Push(&s.queue, x)
	return true
}

// due takes the next one that leaves now, or says how long that takes; ok is false where
// none waits.
func (s *schedule) due(now time.Time) (x parcel, in time.Duration, ok bool) {
	if len(s.queue) == 0 {
		return parcel{}, 0, false
	}
	if in = s.queue[0].at.Sub(now); in > 0 {
		return parcel{}, in, true
	}
	x = heap.Pop(&s.queue).(parcel)
	s.bytes -= x.cost()
	return x, 0, true
}

// clear forgets all that wait, and returns how many they were.
func (s *schedule) clear() (n int) {
	n = len(s.queue)
	s.queue, s.bytes = nil, 0
	return n
}
