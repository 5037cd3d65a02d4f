package hub

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// session is a confirmed connection of a member.
type session struct {
	hub    *Hub
	seat   *seat
	id     policy.ID // of the membership
	key    contract.NoiseKey
	conn   *quic.Conn
	stream *quic.Stream
	since  time.Time // by the wall clock
	began  time.Time // by the monotonic one

	joiner   *tunnel.Joiner
	splitter tunnel.Splitter
	scratch  buffer // of the reader, for joining
	out      outlet
	followed net.Addr // of the sender: where its writes are counted

	limit    atomic.Int64 // bytes that one datagram to the member holds
	peerSize atomic.Int64 // what the member says that one to the hub holds; 0 for nothing
	telling  atomic.Bool  // a message is being written on the stream

	narrowings atomic.Uint64 // how often QUIC said less than before
	echoes     atomic.Uint64 // answers among the packets to the member
	size, sent int64         // what QUIC said, and packets relayed to the member, at the last look

	asker atomic.Pointer[quic.Conn] // the newest connection that waits for an answer of this one
	lives bool                      // what it got; guarded by Hub.mu

	ended  chan struct{} // closed when the session begins to end
	ending sync.Once
	why    atomic.Uint32 // the sessionEnd, once ended
}

func (h *Hub) newSession(s *seat, key contract.NoiseKey, conn *quic.Conn, stream *quic.Stream) *session {
	x := &session{
		hub: h, seat: s, id: s.id, key: key, conn: conn, stream: stream,
		joiner: tunnel.NewJoiner(int(h.terms.InnerMTU)), ended: make(chan struct{}),
	}
	x.out.wake = make(chan struct{}, 1)
	x.out.written.wake = x.out.wake
	x.measure()
	return x
}

// end ends the session and its connection, and returns when nothing of it leaves
// any more: QUIC has sent what it had sealed, and forgotten its queue. It does not
// wait for the peer.
func (s *session) end(why sessionEnd, code tunnel.CloseCode) {
	s.ending.Do(func() {
		s.why.Store(uint32(why))
		close(s.ended)
	})
	s.conn.CloseWithError(code.QUIC(), code.String())
	s.out.close()
}

// over reports whether the session has begun to end.
func (s *session) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// oversize is longer than any datagram can be.
var oversize [1 << 16]byte

// measure asks QUIC how much a datagram holds on the path as it is now: there is no
// other way than to offer it one that never fits. QUIC itself takes nothing back but
// where it begins anew, which is when the member has moved.
func (s *session) measure() (changed bool) {
	size, ok := tooLarge(s.conn.SendDatagram(oversize[:]))
	if !ok {
		return false
	}
	s.limit.Store(size)
	before := s.size
	s.size = size
	if size < before {
		s.narrowings.Add(1)
		s.hub.metrics.narrowed.Inc()
	}
	return size != before
}

// sends reports whether packets of others have gone to the member since the last look
// that may have been larger than every path carries. Only a look calls it. Answers do not
// count: the member checks its path with them, because of what it is told.
func (s *session) sends() bool {
	before := s.sent
	s.sent = int64(s.seat.traffic.toPackets.Load() - s.echoes.Load())
	return s.sent != before && s.size > tunnel.SafeDatagram
}

// address is where the member's packets come from.
func (s *session) address() net.Addr { return s.conn.RemoteAddr() }

// tellSize tells the member how much a datagram to it holds, which also makes it look
// whether one does arrive. It does not wait: a
// member that reads nothing costs one goroutine for controlWait, and its connection.
func (s *session) tellSize() {
	if !s.telling.CompareAndSwap(false, true) {
		return
	}
	size := min(max(s.limit.Load(), 1), 0xffff)
	s.hub.workers.Go(func() {
		defer s.telling.Store(false)
		s.stream.SetWriteDeadline(time.Now().Add(controlWait))
		err := tunnel.WriteMessage(s.stream, tunnel.Path{Lane: tunnel.LaneDatagram, Size: uint16(size)})
		if err != nil && !s.over() {
			s.end(endedStuck, tunnel.CloseTimeout)
		}
	})
}
