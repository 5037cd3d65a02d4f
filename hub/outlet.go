package hub

import (
	"context"
	"errors"
	"sync"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// outlet is what waits for one member, and what of it QUIC has been handed.
type outlet struct {
	wake chan struct{} // there is something to do; has room for one

	mu    sync.Mutex // guards what follows; a leaf
	queue queue
	// answers are those of the hub to the member's echo requests, and leave first. The
	// member checks its path with them: if they waited behind all that is sent to it, and
	// were dropped where that is too much, it would take every flood for a path that has
	// become narrower. There are few of them (policy.EchoBudget).
	answers queue
	handed  handed
	closed  bool
	// waits are the fences that somebody waits for, each further than the one before. Each
	// is passed by itself, or networks that come one behind the other would keep all of them
	// from it. None waits for longer than fenceWait: the connection is closed then.
	waits  []waiting
	filled uint64 // buffers that were written when QUIC's writer was last given one more
	urged  bool   // it is to be given one more

	written written // is guarded by nothing
}

// waiting is a fence that somebody waits for: passed is closed when the datagram is gone.
type waiting struct {
	fence  uint64
	passed chan struct{}
}

// oldest is the fence that is passed next, 0 while nobody waits.
func (o *outlet) oldest() uint64 {
	if len(o.waits) == 0 {
		return 0
	}
	return o.waits[0].fence
}

// offer queues a packet. It never waits.
func (o *outlet) offer(e entry) (why policy.Reason, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return policy.DestinationOffline, false
	case e.echo && !o.answers.push(e, maxAnswers), !e.echo && !o.queue.push(e, maxQueued):
		return policy.QueueFull, false
	}
	if o.queue.count+o.answers.count == 1 {
		signal(o.wake)
	}
	return 0, true
}

// pop takes what leaves next.
func (o *outlet) pop() (entry, bool) {
	if e, ok := o.answers.pop(); ok {
		return e, true
	}
	return o.queue.pop()
}

// bar returns a channel that is closed when nothing that the table forbids can leave
// here any more, or nil where that is so already. The table is in force, so that
// nothing more of the kind is handed over.
func (o *outlet) bar(t *policy.Table, to policy.ID, now network.Instant) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handed.wrote(o.written.count.Load(), o.oldest())
	fence := o.handed.fence(t, to, now)
	if o.closed || fence == 0 {
		return nil
	}
	if n := len(o.waits); n == 0 || o.waits[n-1].fence < fence {
		o.waits = append(o.waits, waiting{fence, make(chan struct{})})
		o.urged = true
		o.written.awaited.Store(true)
	}
	signal(o.wake)
	return o.waits[len(o.waits)-1].passed
}

// urge has QUIC's writer be given one more buffer, where somebody waits: what it was
// given may have gone where nothing is counted, since the member moved, or have failed.
func (o *outlet) urge() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waits) > 0 {
		o.urged = true
		signal(o.wake)
	}
}

// pushOut is what a sender does that has nothing to carry: while somebody waits, it
// pushes what is waited for out of QUIC's queue, and from then on gives QUIC's writer one
// buffer after another. The caller holds the lock.
func (o *outlet) pushOut(written uint64) work {
	n := len(o.waits)
	switch {
	case n == 0:
		return rest
	case o.handed.added < o.waits[n-1].fence+quicDepth:
	case written == o.filled && !o.urged:
		return rest
	default:
		o.filled, o.urged = written, false
	}
	return fill
}

// close drops what waits. Whoever waits for a fence waits no more. It may be called
// again.
func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.pass()
	signal(o.wake)
}

// trim gives up memory that an empty queue does not need now.
func (o *outlet) trim() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue.trim()
	o.answers.trim()
}

// pass ends the waits that are over. The caller holds the lock.
func (o *outlet) pass() {
	for len(o.waits) > 0 && (o.closed || o.handed.gone >= o.waits[0].fence) {
		close(o.waits[0].passed)
		o.waits = o.waits[1:]
	}
	if len(o.waits) == 0 {
		o.waits = nil
		o.written.awaited.Store(false)
	}
}

// work is what a sender does next.
type work uint8

const (
	rest   work = iota // nothing, until it is woken
	carry              // a packet
	fill               // a datagram that means nothing, so that others leave QUIC's queue
	finish             // the session is over
)

// take notes what became of the packet before, and takes the next one that the table
// in force lets pass. The table is read under the lock: whoever puts another in force
// finds under the lock either that the packet is pending, or that it was judged by
// the new one.
func (s *session) take(done int) (e entry, w work) {
	o := &s.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handed.took(done)
	written := o.written.count.Load()
	o.handed.wrote(written, o.oldest())
	if len(o.waits) > 0 {
		o.pass()
	}
	for {
		if o.closed {
			s.discard()
			return entry{}, finish
		}
		e, ok := o.pop()
		if !ok {
			return entry{}, o.pushOut(written)
		}
		if why, ok := s.judgeAgain(&e); !ok {
			s.lose(&e, why)
			continue
		}
		o.handed.pending = wayOf(&e)
		return e, carry
	}
}

// discard drops all that waits. The caller holds the lock.
func (s *session) discard() {
	for e, ok := s.out.pop(); ok; e, ok = s.out.pop() {
		s.lose(&e, policy.DestinationOffline)
	}
	s.out.queue.trim()
	s.out.answers.trim()
}

// lose drops a packet that waited for this member.
func (s *session) lose(e *entry, why policy.Reason) {
	s.hub.drop(e.from, why)
	s.seat.traffic.toDropped.Add(1)
	e.release()
}

// judgeAgain judges a packet that waited: whole if another table is in force, else
// by the deadlines alone, since everything else is as it was.
func (s *session) judgeAgain(e *entry) (why policy.Reason, ok bool) {
	t, now := s.hub.table.Load(), s.hub.now()
	if s.hub.suspended(now) {
		return policy.CustodySuspended, false
	}
	from, to := t.Member(e.sender()), t.Member(s.id)
	switch {
	case from == nil:
		return policy.SenderUnknown, false
	case from.Deadline.Reached(now):
		return policy.SenderExpired, false
	case to == nil:
		return policy.DestinationUnknown, false
	case to.Deadline.Reached(now):
		return policy.DestinationExpired, false
	case e.echo || e.epoch == t.Epoch():
		return 0, true
	}
	v := t.Judge(e.packet, e.sender(), now)
	switch {
	case v.Action == policy.Drop:
		return v.Reason, false
	case v.Action != policy.Relay || v.To.ID != s.id:
		return policy.DestinationUnknown, false // it belongs to another member now
	}
	return 0, true
}

// send hands to QUIC what waits, until the outlet is closed, as it is when the
// connection ends. SendDatagram waits while QUIC's queue is full: for this member
// alone.
func (s *session) send() {
	defer context.AfterFunc(s.conn.Context(), s.out.close)()
	defer s.unfollow()
	bufs := [2][]byte{make([]byte, 0, tunnel.MaxInnerMTU), make([]byte, 0, tunnel.MaxInnerMTU)}
	done := 0
	for {
		s.follow()
		e, w := s.take(done)
		done = 0
		switch w {
		case carry:
			done = s.carry(&e, &bufs)
			e.release()
		case fill:
			if s.conn.SendDatagram(nil) == nil {
				done = 1
			} else {
				s.out.close()
			}
		case rest:
			<-s.out.wake
		case finish:
			return
		}
	}
}

// carry hands one packet to QUIC, whole or in two parts as the path takes it, and
// returns how many datagrams that were.
func (s *session) carry(e *entry, bufs *[2][]byte) (datagrams int) {
	var err error
	// The path may become smaller while the packet is cut, hardly twice in a row.
	for range mostParts {
		var first, second []byte
		if first, second, err = s.splitter.Split(e.packet, int(s.limit.Load()), bufs); err != nil {
			break
		}
		if err = s.conn.SendDatagram(first); err == nil {
			datagrams++
			if second != nil {
				if err = s.conn.SendDatagram(second); err == nil {
					datagrams++
				}
			}
		}
		if err == nil {
			s.seat.traffic.toPackets.Add(1)
			s.seat.traffic.toBytes.Add(uint64(len(e.packet)))
			s.hub.metrics.relayed(e, len(e.packet))
			if e.echo {
				s.echoes.Add(1)
			}
			return datagrams
		}
		size, ok := tooLarge(err)
		if !ok {
			break
		}
		s.limit.Store(size)
		if datagrams > 0 {
			break // its other part left already
		}
	}
	why := policy.DestinationOffline
	if _, ok := tooLarge(err); ok || errors.Is(err, tunnel.ErrPacketTooLong) {
		why = policy.PathTooSmall
	}
	s.hub.drop(e.from, why)
	s.seat.traffic.toDropped.Add(1)
	return datagrams
}

// tooLarge returns how much a datagram may hold, if that is what an error says.
func tooLarge(err error) (size int64, ok bool) {
	var large *quic.DatagramTooLargeError
	if !errors.As(err, &large) {
		return 0, false
	}
	return large.MaxDatagramPayloadSize, true
}
