package tunnel

import (
	"sync"
	"time"
)

// A Joiner takes the datagrams of one end of a tunnel, of both lanes, and
// gives the packets that were in them. Any goroutine may use it: the parts of
// one packet may arrive at different workers.
//
// It holds at most JoinSlots parts, each shorter than the inner MTU, for at
// most JoinLimit. A part that needs the place of an older packet takes it, and
// gives way to that of a newer one.
type Joiner struct {
	mtu int

	mu    sync.Mutex
	stats JoinStats
	slots [JoinSlots]slot // by number modulo JoinSlots
}

// JoinStats counts what no JoinResult tells.
type JoinStats struct {
	Expired uint64 // parts whose other part did not come in time
	Evicted uint64 // parts whose place a newer one took
	Held    int    // bytes of parts that wait, now
}

// slot is the place of one split packet.
type slot struct {
	state  slotState
	number uint32
	length int
	offset int
	since  time.Time
	bytes  []byte // of the part that came first, while it waits
}

type slotState uint8

const (
	slotFree slotState = iota
	slotWaits
	slotDone // joined, and kept to know the packet's parts when they come again
)

// NewJoiner returns a Joiner of packets of at most mtu bytes, MaxInnerMTU or
// less.
func NewJoiner(mtu int) *Joiner { return &Joiner{mtu: min(mtu, MaxInnerMTU)} }

// Take takes one datagram. The packet it returns, if any, lies in the datagram
// or in scratch, which do not overlap. now is the time of the batch.
func (j *Joiner) Take(datagram []byte, scratch *[MaxInnerMTU]byte, now time.Time) (packet []byte, result JoinResult) {
	switch {
	case len(datagram) == 0:
		return nil, JoinEmpty
	case isPacket(datagram[0]):
		switch {
		case len(datagram) < MinPacket:
			return nil, JoinShort
		case len(datagram) > j.mtu:
			return nil, JoinLong
		}
		return datagram, JoinWhole
	case datagram[0] != partKind:
		return nil, JoinKind
	}
	p, result := readPart(datagram, j.mtu)
	if result.Refused() {
		return nil, result
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.take(p, scratch, now)
}

func (j *Joiner) take(p part, scratch *[MaxInnerMTU]byte, now time.Time) ([]byte, JoinResult) {
	s := &j.slots[p.number%JoinSlots]
	if s.state != slotFree && now.Sub(s.since) >= JoinLimit {
		j.expire(s)
	}
	if s.state != slotFree && s.number != p.number {
		if older(p.number, s.number) {
			return nil, JoinPartOld
		}
		if s.state == slotWaits {
			j.stats.Evicted++
		}
		j.release(s)
	}
	if s.state == slotFree {
		*s = slot{slotWaits, p.number, p.length, p.offset, now, append(s.bytes[:0], p.bytes...)}
		j.stats.Held += len(s.bytes)
		return nil, JoinHeld
	}
	switch {
	case s.length != p.length:
		return nil, JoinPartConflict
	case s.state == slotDone, (s.offset == 0) == (p.offset == 0):
		return nil, JoinPartDuplicate
	}
	end, begin := len(s.bytes), p.offset
	if p.offset == 0 {
		end, begin = len(p.bytes), s.offset
	}
	if end != begin {
		j.release(s)
		if end > begin {
			return nil, JoinPartOverlap
		}
		return nil, JoinPartGap
	}
	copy(scratch[s.offset:], s.bytes)
	copy(scratch[p.offset:], p.bytes)
	j.stats.Held -= len(s.bytes)
	s.state = slotDone
	return scratch[:p.length], JoinJoined
}

// older reports whether packet a was numbered before b. Numbers have 24 bits and
// begin anew behind the last.
func older(a, b uint32) bool { return (a-b)&0xffffff >= 1<<23 }

// Expire drops the parts that have waited for JoinLimit, and the memory of all
// places that hold none. Call it now and then, also when nothing comes.
func (j *Joiner) Expire(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.slots {
		s := &j.slots[i]
		if s.state != slotFree && now.Sub(s.since) >= JoinLimit {
			j.expire(s)
		}
		if s.state != slotWaits {
			s.bytes = nil
		}
	}
}

// Stats returns the counts.
func (j *Joiner) Stats() JoinStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// expire frees a place whose time is over.
func (j *Joiner) expire(s *slot) {
	if s.state == slotWaits {
		j.stats.Expired++
	}
	j.release(s)
}

func (j *Joiner) release(s *slot) {
	if s.state == slotWaits {
		j.stats.Held -= len(s.bytes)
	}
	s.state = slotFree
}
