package node

import (
	"encoding/binary"
	"sync"
)

// queue holds packets in one ring of bytes. One that is full takes nothing: what waits
// longest is nearest to its destination. Its memory is made once, and nothing is allocated
// for a packet.
type queue struct {
	wake chan struct{} // there may be something; has room for one

	mu    sync.Mutex // guards what follows; a leaf
	ring  []byte
	first int // where the oldest packet begins
	used  int // bytes, lengths included
}

// lengthSize is what a packet's length takes in the ring.
const lengthSize = 2

func newQueue(size int) *queue {
	return &queue{wake: make(chan struct{}, 1), ring: make([]byte, size)}
}

// push copies a packet of less than 64 KiB into the queue and reports whether there was
// room. It never waits.
func (q *queue) push(packet []byte) bool {
	if !q.add(packet) {
		return false
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// add is push without a word to who waits.
func (q *queue) add(packet []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	cost := lengthSize + len(packet)
	if q.used+cost > len(q.ring) {
		return false
	}
	var length [lengthSize]byte
	binary.BigEndian.PutUint16(length[:], uint16(len(packet)))
	q.put(q.used, length[:])
	q.put(q.used+lengthSize, packet)
	q.used += cost
	return true
}

// pop copies the oldest packet to dst, which has room for any, and returns its length; 0
// if there is none.
func (q *queue) pop(dst []byte) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used == 0 {
		return 0
	}
	var length [lengthSize]byte
	q.get(0, length[:])
	n := int(binary.BigEndian.Uint16(length[:]))
	q.get(lengthSize, dst[:n])
	q.first = (q.first + lengthSize + n) % len(q.ring)
	q.used -= lengthSize + n
	return n
}

// clear drops all that waits and returns how many packets that were.
func (q *queue) clear() (packets uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.used > 0 {
		var length [lengthSize]byte
		q.get(0, length[:])
		cost := lengthSize + int(binary.BigEndian.Uint16(length[:]))
		q.first = (q.first + cost) % len(q.ring)
		q.used -= cost
		packets++
	}
	return packets
}

// bytes returns how many bytes wait.
func (q *queue) bytes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// put and get copy around the end of the ring. at counts from the oldest byte.
func (q *queue) put(at int, b []byte) {
	at = (q.first + at) % len(q.ring)
	n := copy(q.ring[at:], b)
	copy(q.ring, b[n:])
}

func (q *queue) get(at int, b []byte) {
	at = (q.first + at) % len(q.ring)
	n := copy(b, q.ring[at:])
	copy(b[n:], q.ring)
}
