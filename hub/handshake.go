package hub

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// serve serves one connection until it ends.
func (h *Hub) serve(conn *quic.Conn) {
	p, ok := conn.Context().Value(placeKey{}).(*place)
	if !ok || !h.enter(conn) {
		conn.CloseWithError(tunnel.CloseDraining.QUIC(), tunnel.CloseDraining.String())
		return
	}
	var confirmed atomic.Pointer[session]
	var parts sync.WaitGroup
	defer func() {
		if h.cfg.Log.Recovered(recover(), field.Duty(Name)) {
			conn.CloseWithError(tunnel.CloseInternal.QUIC(), tunnel.CloseInternal.String())
		}
		parts.Wait()
		h.exit(conn)
	}()
	parts.Go(func() { h.guarded(conn, func() { h.read(conn, &confirmed) }) })

	var s *session
	var control *tunnel.Control
	how, node := endGone, "" // where its connection has ended already
	if h.hold(p, conn) {
		s, control, how, node = h.shake(conn, p)
	}
	h.leave(p)
	if how != endConfirmed && h.lost(p) {
		how = endDisplaced
	}
	h.ended(how, node, field.NetAddr(conn.RemoteAddr()))
	if how != endConfirmed {
		conn.CloseWithError(how.code().QUIC(), how.code().String())
		return
	}
	confirmed.Store(s)
	parts.Go(func() { h.guarded(conn, s.send) })
	s.tellSize()
	h.guarded(conn, func() { s.listen(control) })
	h.left(s)
}

// guarded runs a part of a connection. A panic costs the connection.
func (h *Hub) guarded(conn *quic.Conn, part func()) {
	defer func() {
		if h.cfg.Log.Recovered(recover(), field.Duty(Name)) {
			conn.CloseWithError(tunnel.CloseInternal.QUIC(), tunnel.CloseInternal.String())
		}
	}()
	part()
}

// enter makes a connection known, so that the end of custody closes it. It is known
// before it reads the network.
func (h *Hub) enter(conn *quic.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining || h.closed {
		return false
	}
	h.conns[conn] = struct{}{}
	return true
}

func (h *Hub) exit(conn *quic.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, conn)
}

// shake runs the handshake up to the node's confirmation, and lets the session take
// its member's place.
func (h *Hub) shake(conn *quic.Conn, p *place) (s *session, control *tunnel.Control, how handshakeEnd, node string) {
	deadline := p.since.Add(handshakeLimit)
	ctx, cancel := context.WithDeadline(conn.Context(), deadline)
	defer cancel()
	stream, err := conn.AcceptStream(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, nil, endTimeout, ""
		}
		return nil, nil, endGone, ""
	}
	stream.SetDeadline(deadline)
	t := h.table.Load()
	if t.Network() == nil {
		return nil, nil, endNoNetwork, ""
	}
	responder := tunnel.Responder{Static: h.key, AuthorityID: t.Network().AuthorityID}
	request, err := responder.Receive(stream, tunnel.ExporterOf(conn))
	if err != nil {
		return nil, nil, endFor(err), ""
	}
	// The message may have taken its time: who is a member says the network in force.
	if t = h.table.Load(); t.Network() == nil || t.Network().AuthorityID != responder.AuthorityID {
		return nil, nil, endWithdrawn, ""
	}
	member, how := h.find(t, request.Peer(), h.now())
	if how != endConfirmed {
		return nil, nil, how, nodeOf(member)
	}
	answer, err := h.terms.Negotiate(request.Offer())
	if err != nil {
		return nil, nil, endFor(err), member.NodeID
	}
	answer.ControlAddress = netip.PrefixFrom(member.ControlAddress, t.ControlPrefix().Bits())
	answer.HubAddress = t.HubAddress()
	agreed, err := request.Answer(stream, answer)
	if err != nil {
		return nil, nil, endFor(err), member.NodeID
	}
	control = agreed.Control(stream)
	if _, err := control.Next(); err != nil { // always the confirmation
		return nil, nil, endFor(err), member.NodeID
	}
	if !h.leave(p) { // the connection is being closed, and must not take the member's place
		return nil, nil, endGone, member.NodeID
	}
	stream.SetDeadline(time.Time{})
	failpoint.Reach(failpoint.MemberConfirmed)
	s, how = h.claim(member.ID, conn, stream)
	return s, control, how, member.NodeID
}

func nodeOf(m *policy.Member) string {
	if m == nil {
		return ""
	}
	return m.NodeID
}

// find returns the member of a key, or how the handshake ends that has it.
func (h *Hub) find(t *policy.Table, key contract.NoiseKey, now network.Instant) (*policy.Member, handshakeEnd) {
	m := t.MemberByKey(key)
	if m != nil {
		if m.Deadline.Reached(now) {
			return m, endExpired
		}
		return m, endConfirmed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.former[key]; ok {
		return nil, endWithdrawn
	}
	return nil, endUnknown
}

// claim lets a connection that was confirmed take its member's place, if that is
// still one by the network in force.
func (h *Hub) claim(id policy.ID, conn *quic.Conn, stream *quic.Stream) (*session, handshakeEnd) {
	h.contest(id, conn)
	if conn.Context().Err() != nil {
		return nil, endGone
	}
	now := h.now()
	h.mu.Lock()
	s, older, how := h.take(id, conn, stream, now)
	h.mu.Unlock()
	if older != nil {
		h.workers.Go(func() { older.end(endedNewer, tunnel.CloseSuperseded) })
	}
	h.flush()
	return s, how
}

// take is claim under the lock.
func (h *Hub) take(id policy.ID, conn *quic.Conn, stream *quic.Stream, now network.Instant) (s, older *session, how handshakeEnd) {
	m := h.table.Load().Member(id)
	switch {
	case h.draining || h.closed:
		return nil, nil, endDraining
	case m == nil:
		return nil, nil, endWithdrawn
	case m.Deadline.Reached(now):
		return nil, nil, endExpired
	}
	seat := h.seats[id.Slot()]
	if older = seat.session; older != nil {
		mono := time.Since(h.start)
		if seat.switches.suspects(mono) && older.asker.Load() != conn {
			return nil, nil, endHeld // a still newer one has asked
		}
		takes, duplicate := seat.switches.attempt(mono, older.lives)
		if duplicate {
			h.publish(DuplicateKey, field.Node(seat.node), field.NetAddr(conn.RemoteAddr()))
		}
		if !takes {
			return nil, nil, endHeld
		}
		h.displace(leaver{older, endedNewer, tunnel.CloseSuperseded})
		h.publish(MemberSuperseded, field.Node(seat.node), field.NetAddr(conn.RemoteAddr()))
	}
	s = h.newSession(seat, m.Key, conn, stream)
	s.since, s.began = h.cfg.Wall(), time.Now()
	seat.session = s
	seat.sessions++
	h.routes[id.Slot()].Store(s)
	if older == nil {
		h.publish(MemberConnected, field.Node(seat.node), field.NetAddr(conn.RemoteAddr()))
	}
	return s, older, endConfirmed
}

// listen reads what the member sends on the stream until the session ends, and ends
// it.
func (s *session) listen(control *tunnel.Control) {
	for {
		m, err := control.Next()
		if err != nil {
			s.end(s.endOf(err))
			return
		}
		if path, ok := m.(tunnel.Path); ok {
			s.peerSize.Store(int64(path.Size))
		}
	}
}

// endOf says why a session ends whose stream cannot be read any more.
func (s *session) endOf(err error) (sessionEnd, tunnel.CloseCode) {
	var idle *quic.IdleTimeoutError
	switch code := tunnel.CloseCodeFor(err); {
	case errors.As(err, &idle):
		return endedSilent, tunnel.CloseTimeout
	case code == tunnel.CloseProtocol:
		return endedProtocol, code
	}
	return endedByPeer, tunnel.CloseDone
}

// left takes a session that has ended from its member's place, if it has it still.
func (h *Hub) left(s *session) {
	why := sessionEnd(s.why.Load())
	h.metrics.ended.Of(why).Inc()
	h.mu.Lock()
	delete(h.leaving, s)
	if s.seat.session == s {
		s.seat.session = nil
		h.routes[s.id.Slot()].CompareAndSwap(s, nil)
		h.disconnected(s, why)
	}
	h.mu.Unlock()
	h.flush()
}

// disconnected tells of a member that has no session any more. The caller holds mu.
func (h *Hub) disconnected(s *session, why sessionEnd) {
	h.publish(MemberDisconnected, field.Node(s.seat.node), field.Reason(why.String()),
		field.Duration(time.Since(s.began)))
}
