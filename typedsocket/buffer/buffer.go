package buffer

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// HeadRoom is the room kept in front of a payload: a frame header of at
	// most 14 bytes (RFC 6455 §5.2) and the head of an envelope, which is 32
	// bytes and a method name of at most 128 bytes escaped.
	HeadRoom = 256

	// TailRoom is the room kept behind a payload: the tail of an envelope,
	// which is about 130 bytes with ids of the usual 28 bytes. Longer tails
	// (long ids, an error object) make the buffer grow, which costs a copy.
	TailRoom = 256

	// largestClass is the payload size of the largest pooled class. A node's
	// frames end at 4 MiB (contract §19); only Cloudly's may be larger, and
	// those are rare enough for the garbage collector.
	largestClass = 4<<20 + 64<<10
)

// classes are the payload sizes memory is pooled in, each about four times the
// one before. A frame's length is unknown until it has been read, so its buffer
// climbs the classes: the memory it ends in is at most about four times its
// size, and the copies on the way at most a third of it. Three classes are cut
// to what travels here: a stream chunk of 64 KiB with its header, a report of
// 1 MiB with its envelope, a node's largest frame.
var classes = [...]int{4 << 10, 16 << 10, 64<<10 + 512, 256 << 10, 1<<20 + 64<<10, largestClass}

var pools [len(classes)]sync.Pool

// lent counts the buffers that were got and not released.
var lent atomic.Int64

// moved counts the payload bytes that were copied because a buffer was full.
var moved atomic.Uint64

// Moved returns how many payload bytes buffers copied in the whole process
// when they outgrew their memory. Benchmarks show it.
func Moved() uint64 { return moved.Load() }

// Lent returns how many buffers are in use in the whole process. At rest it is
// zero; tests hold the other packages to that.
func Lent() int64 { return lent.Load() }

// Buffer is one message: a payload with room on both sides. The zero value
// is not usable; Get makes one. It is not safe for concurrent use.
type Buffer struct {
	mem        []byte // the whole memory; nil once released
	start, end int    // the payload is mem[start:end]
	class      int    // index into pools, or -1
	erase      bool
	stamp      time.Time
}

// Get returns an empty buffer with room for a payload of n bytes.
func Get(n int) *Buffer {
	lent.Add(1)
	for i, size := range classes {
		if n > size {
			continue
		}
		if b, ok := pools[i].Get().(*Buffer); ok {
			b.mem = b.mem[:cap(b.mem)]
			b.start, b.end = HeadRoom, HeadRoom
			b.class, b.stamp = i, time.Time{}
			return b
		}
		return &Buffer{mem: make([]byte, HeadRoom+size+TailRoom), start: HeadRoom, end: HeadRoom, class: i}
	}
	return &Buffer{mem: make([]byte, HeadRoom+n+TailRoom), start: HeadRoom, end: HeadRoom, class: -1}
}

// Of returns a buffer whose payload is a copy of p.
func Of(p []byte) *Buffer {
	b := Get(len(p))
	b.Append(p)
	return b
}

// Stamp notes when the message in the buffer came.
func (b *Buffer) Stamp(t time.Time) { b.stamp = t }

// Stamped returns what Stamp noted, the zero time for a message that came from
// nowhere.
func (b *Buffer) Stamped() time.Time { return b.stamp }

// Bytes returns the payload. It aliases the buffer and is good until the
// buffer is changed or released.
func (b *Buffer) Bytes() []byte { return b.mem[b.start:b.end] }

// Len returns the payload's length in bytes.
func (b *Buffer) Len() int { return b.end - b.start }

// Size returns the memory the buffer holds, in bytes. Bounds that protect
// memory count this, not Len.
func (b *Buffer) Size() int { return len(b.mem) }

// Append adds p behind the payload, growing the buffer when there is no room.
func (b *Buffer) Append(p []byte) {
	b.reserve(len(p))
	b.end += copy(b.mem[b.end:], p)
}

// Free returns the memory behind the payload that Grown may turn into
// payload, without the tail room. It is empty when the buffer is full.
func (b *Buffer) Free() []byte {
	limit := len(b.mem) - TailRoom
	if b.end >= limit {
		return nil
	}
	return b.mem[b.end:limit]
}

// Grown makes the first n bytes of Free part of the payload.
func (b *Buffer) Grown(n int) {
	if n < 0 || n > len(b.Free()) {
		panic(fmt.Sprintf("buffer: grown by %d with %d free", n, len(b.Free())))
	}
	b.end += n
}

// Reset makes the payload empty again.
func (b *Buffer) Reset() { b.start, b.end = HeadRoom, HeadRoom }

// Grow makes Free return at least one byte, by moving the payload into memory
// of the next size class when it is full.
func (b *Buffer) Grow() {
	if len(b.Free()) > 0 {
		return
	}
	if b.Len() < largestClass {
		b.move(b.Len() + 1)
		return
	}
	// Beyond the classes memory doubles, or reading would be quadratic.
	b.move(2 * b.Len())
}

// Keep narrows the payload to the n bytes of it that begin at offset start;
// what lies around them becomes room.
func (b *Buffer) Keep(start, n int) {
	if start < 0 || n < 0 || start+n > b.Len() {
		panic(fmt.Sprintf("buffer: keep %d bytes at %d of %d", n, start, b.Len()))
	}
	b.start += start
	b.end = b.start + n
}

// Wrap puts head in front of the payload and tail behind it, in place when
// there is room. Neither may alias the buffer.
func (b *Buffer) Wrap(head, tail []byte) {
	if b.start < headerRoom+len(head) || len(b.mem)-b.end < len(tail) {
		b.rehome(len(head), len(tail))
	}
	b.start -= copy(b.mem[b.start-len(head):], head)
	b.end += copy(b.mem[b.end:], tail)
}

// headerRoom is what Wrap leaves free in front for the frame header.
const headerRoom = 14

// Framed returns header and payload as one slice, header written into the
// room in front of the payload. The payload itself stays as it is. header is
// at most 14 bytes, as in RFC 6455 §5.2.
func (b *Buffer) Framed(header []byte) []byte {
	if len(header) > b.start {
		panic("buffer: no room for a frame header")
	}
	copy(b.mem[b.start-len(header):], header)
	return b.mem[b.start-len(header) : b.end]
}

// Erase makes Release zero the memory before anybody else can have it.
func (b *Buffer) Erase() { b.erase = true }

// Secret reports whether Erase was asked for: a copy must be erased too.
func (b *Buffer) Secret() bool { return b.erase }

// Release gives the memory back. The buffer must not be used afterwards; a
// second Release panics, since it would give one memory to two owners.
func (b *Buffer) Release() {
	if b.mem == nil {
		panic("buffer: released twice")
	}
	if b.erase {
		clear(b.mem)
	}
	lent.Add(-1)
	mem, class := b.mem, b.class
	b.mem = nil
	if class < 0 {
		return
	}
	// A new header, so that a stale pointer to the old one meets nil memory
	// and panics instead of writing into another owner's message.
	pools[class].Put(&Buffer{mem: mem, class: class})
}

// reserve makes room for n bytes behind the payload.
func (b *Buffer) reserve(n int) {
	if len(b.mem)-TailRoom-b.end < n {
		b.move(b.Len() + n)
	}
}

// move brings the payload into memory for n bytes of payload.
func (b *Buffer) move(n int) {
	next := Get(n)
	next.end = next.start + copy(next.mem[next.start:], b.Bytes())
	moved.Add(uint64(b.Len()))
	b.take(next)
}

// rehome brings the payload into memory with room for a head and a tail.
func (b *Buffer) rehome(head, tail int) {
	next := Get(head + b.Len() + tail)
	next.start += head
	next.end = next.start + copy(next.mem[next.start:], b.Bytes())
	moved.Add(uint64(b.Len()))
	b.take(next)
}

// take makes the memory of next the buffer's own and gives the old one back.
// What was copied out of it is zeroed there: a message that is still being
// read may turn out to be one whose memory must be erased.
func (b *Buffer) take(next *Buffer) {
	clear(b.Bytes())
	old := Buffer{mem: b.mem, class: b.class, erase: b.erase}
	b.mem, b.start, b.end, b.class = next.mem, next.start, next.end, next.class
	old.Release()
}
