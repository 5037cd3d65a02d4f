package hub

import (
	"sync"

	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// entry is a packet that waits for its destination.
type entry struct {
	packet []byte
	own    *buffer // the memory of the packet where it is the pool's, else nil
	from   *seat   // who sent it
	epoch  uint64  // of the table that let it pass
	echo   bool    // an answer of the hub itself
}

// buffer has room for any packet.
type buffer [tunnel.MaxInnerMTU]byte

// buffers are those of packets that were joined. All others lie in memory that QUIC
// allocated for them alone.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

// release gives the memory back.
func (e *entry) release() {
	if e.own != nil {
		buffers.Put(e.own)
	}
}

func (e *entry) sender() policy.ID { return e.from.id }

// queue is a ring of entries, bounded in bytes by who uses it. One that is full takes
// nothing: what waits longest is nearest to its destination.
type queue struct {
	ring  []entry // its length is a power of two, or 0
	first int
	count int
	bytes int
}

// leastRing is the length of the smallest ring.
const leastRing = 16

// push appends an entry and reports whether there was room for it in so many bytes.
func (q *queue) push(e entry, most int) bool {
	cost := len(e.packet) + entryCost
	if q.bytes+cost > most {
		return false
	}
	if q.count == len(q.ring) {
		q.grow()
	}
	q.ring[(q.first+q.count)&(len(q.ring)-1)] = e
	q.count++
	q.bytes += cost
	return true
}

// grow doubles the ring.
func (q *queue) grow() {
	ring := make([]entry, max(2*len(q.ring), leastRing))
	n := copy(ring, q.ring[q.first:])
	copy(ring[n:], q.ring[:q.first])
	q.ring, q.first = ring, 0
}

// pop takes the first entry.
func (q *queue) pop() (entry, bool) {
	if q.count == 0 {
		return entry{}, false
	}
	e := q.ring[q.first]
	q.ring[q.first] = entry{}
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.count--
	q.bytes -= len(e.packet) + entryCost
	return e, true
}

// trim gives up the memory of an empty ring that has grown.
func (q *queue) trim() {
	if q.count == 0 && len(q.ring) > leastRing {
		q.ring, q.first = nil, 0
	}
}
