package queue

import (
	"fmt"
	"time"

	"serve.zone/relay/typedsocket/buffer"
)

// quantum is what a flow may send more each round, in bytes. It is small so
// that flows stay within about one frame of each other even when their frames
// are small; large frames do not pay for that, because rounds in which no
// flow could send are skipped in one step.
const quantum = 1 << 10

// Item is one frame that waits to leave.
type Item struct {
	Buf    *buffer.Buffer
	Binary bool
	flow   bool
	// Sent, when set, is called once: with true when the frame has left, with
	// false when it was dropped or the connection broke while it was written.
	// It runs on a goroutine of the socket and must not block.
	Sent func(left bool)
	// Passed, when set, is called when a frame whose memory has a stamp has left,
	// under the rules of Sent: with the time since the stamp.
	Passed func(time.Duration)
	// Owner is whoever queued the frame, or nil. The queue does not look at it.
	Owner any
}

// OfFlow reports whether the frame was queued in a flow, and not as an own one.
func (i *Item) OfFlow() bool { return i.flow }

// End gives the frame's memory back and tells its owner. It is for whoever took
// the item out of the queue, once.
func (i Item) End(left bool) {
	stamp := i.Buf.Stamped()
	i.Buf.Release()
	if i.Sent != nil {
		i.Sent(left)
	}
	if i.Passed != nil && left && !stamp.IsZero() {
		i.Passed(time.Since(stamp))
	}
}

// Limits bound the memory of waiting frames, in bytes.
type Limits struct {
	Own   int // all own frames together
	Flow  int // one flow
	Flows int // all flows together
}

// FullError says which bound a refused frame would have broken.
type FullError struct {
	Flow   string // "" for own frames
	Whole  bool   // the bound of all flows together, not of one
	Queued int    // bytes that wait under that bound
	Size   int    // bytes of the refused frame
	Limit  int    // the bound, in bytes
}

func (e *FullError) Error() string {
	what := "own frames"
	switch {
	case e.Whole:
		what = "all flows"
	case e.Flow != "":
		what = fmt.Sprintf("flow %q", e.Flow)
	}
	return fmt.Sprintf("queue full: %s hold %d bytes, a frame of %d would pass the limit of %d", what, e.Queued, e.Size, e.Limit)
}

// Queue is what waits to leave on one socket.
type Queue struct {
	limits Limits
	own    fifo
	flows  map[string]*flow
	turn   *flow // the flow whose turn it is; nil when none waits
	active int   // flows in the ring
	waits  int   // bytes of memory over all flows
	misses int   // visits since a flow last could send
	spare  *flow // flows that have left, linked by next, to be used again
	spares int
}

// maxSpares bounds the flows kept for reuse: a cluster has at most 256 nodes.
const maxSpares = 256

// keptItems bounds the list a spare flow keeps.
const keptItems = 64

// flow is one ring member: it exists while it has something to send.
type flow struct {
	name       string
	frames     fifo
	deficit    int
	prev, next *flow
}

// New returns an empty queue.
func New(limits Limits) *Queue {
	return &Queue{limits: limits, flows: make(map[string]*flow)}
}

// PushOwn queues an own frame, ahead of all flows.
func (q *Queue) PushOwn(item Item) error {
	size := item.Buf.Size()
	if q.own.bytes+size > q.limits.Own {
		return &FullError{Queued: q.own.bytes, Size: size, Limit: q.limits.Own}
	}
	item.flow = false
	q.own.push(item)
	return nil
}

// Push queues a frame of a flow behind the flow's other frames.
func (q *Queue) Push(name string, item Item) error {
	size := item.Buf.Size()
	f := q.flows[name]
	queued := 0
	if f != nil {
		queued = f.frames.bytes
	}
	if queued+size > q.limits.Flow {
		return &FullError{Flow: name, Queued: queued, Size: size, Limit: q.limits.Flow}
	}
	if q.waits+size > q.limits.Flows {
		return &FullError{Flow: name, Whole: true, Queued: q.waits, Size: size, Limit: q.limits.Flows}
	}
	if f == nil {
		f = q.fresh(name)
		q.flows[name] = f
		q.join(f)
	}
	item.flow = true
	f.frames.push(item)
	q.waits += size
	return nil
}

// Pop takes the frame that leaves next. It reports false when none waits.
func (q *Queue) Pop() (Item, bool) {
	if q.own.len() > 0 {
		return q.own.pop(), true
	}
	for q.turn != nil {
		f := q.turn
		size := f.frames.front().Buf.Len()
		if f.deficit >= size {
			f.deficit -= size
			q.misses = 0
			return q.take(f), true
		}
		q.pass()
	}
	return Item{}, false
}

// Empty reports whether nothing waits.
func (q *Queue) Empty() bool { return q.own.len() == 0 && q.turn == nil }

// Bytes returns the memory of what waits: own frames, and all flows.
func (q *Queue) Bytes() (own, flows int) { return q.own.bytes, q.waits }

// WithdrawOwn takes the own frame of that owner out, which is not nil. It reports false
// when none waits. It looks at every own frame.
func (q *Queue) WithdrawOwn(owner any) (Item, bool) { return q.own.withdraw(owner) }

// Drain takes everything out, in the order it would have left, and hands each
// frame to drop.
func (q *Queue) Drain(drop func(Item)) {
	for {
		item, ok := q.Pop()
		if !ok {
			return
		}
		drop(item)
	}
}

// DropFlows takes everything out but the own frames and hands each frame to
// drop, a flow's frames in their order.
func (q *Queue) DropFlows(drop func(Item)) {
	for q.turn != nil {
		drop(q.take(q.turn))
	}
	q.misses = 0
}

// take removes a flow's first frame, and the flow when that was its last.
func (q *Queue) take(f *flow) Item {
	item := f.frames.pop()
	q.waits -= item.Buf.Size()
	if f.frames.len() == 0 {
		q.leave(f)
	}
	return item
}

// pass gives the turn, and a quantum, to the next flow. After a whole round
// in which no flow could send, it gives every flow as many quanta at once as
// the nearest to sending still lacks, less the one it gets on its turn.
func (q *Queue) pass() {
	q.misses++
	if q.misses > q.active {
		rounds := q.roundsToNext() - 1
		for f, n := q.turn, q.active; n > 0 && rounds > 0; f, n = f.next, n-1 {
			f.deficit += rounds * quantum
		}
		q.misses = 1
	}
	q.turn = q.turn.next
	q.turn.deficit += quantum
}

// roundsToNext returns the least number of rounds, at least 1, after which
// some flow may send.
func (q *Queue) roundsToNext() int {
	least := 0
	for f, n := q.turn, q.active; n > 0; f, n = f.next, n-1 {
		lacks := f.frames.front().Buf.Len() - f.deficit
		rounds := max(1, (lacks+quantum-1)/quantum)
		if least == 0 || rounds < least {
			least = rounds
		}
	}
	return least
}

// fresh returns an empty flow, one that was used before when there is one.
func (q *Queue) fresh(name string) *flow {
	f := q.spare
	if f == nil {
		return &flow{name: name}
	}
	q.spare, q.spares = f.next, q.spares-1
	*f = flow{name: name, frames: fifo{items: f.frames.items}}
	return f
}

// keep remembers a flow that has left.
func (q *Queue) keep(f *flow) {
	if q.spares == maxSpares || cap(f.frames.items) > keptItems {
		return
	}
	f.prev, f.next = nil, q.spare
	q.spare, q.spares = f, q.spares+1
}

// join puts a flow at the end of the ring: just before the one whose turn it is.
func (q *Queue) join(f *flow) {
	q.active++
	if q.turn == nil {
		f.prev, f.next = f, f
		q.turn = f
		return
	}
	f.prev, f.next = q.turn.prev, q.turn
	f.prev.next, f.next.prev = f, f
}

// leave takes a flow out of the ring. What it had left of its deficit is
// forfeit, as deficit round robin demands: a flow cannot save up by idling.
func (q *Queue) leave(f *flow) {
	delete(q.flows, f.name)
	q.active--
	if q.active == 0 {
		q.turn = nil
		q.keep(f)
		return
	}
	f.prev.next, f.next.prev = f.next, f.prev
	if q.turn == f {
		q.turn = f.next
		q.turn.deficit += quantum
	}
	q.keep(f)
}
