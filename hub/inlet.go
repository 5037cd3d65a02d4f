package hub

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// read takes the datagrams of one connection until it ends. Until its session is
// confirmed they are dropped (design §5.1). It waits for nothing but the connection:
// QUIC drops what is not read in time.
func (h *Hub) read(conn *quic.Conn, confirmed *atomic.Pointer[session]) {
	for {
		datagram, err := conn.ReceiveDatagram(context.Background()) // the connection ends it
		if err != nil {
			return
		}
		s := confirmed.Load()
		if s == nil {
			h.metrics.early.Inc()
			continue
		}
		if s.over() {
			return
		}
		s.receive(datagram, h.moment())
	}
}

// receive takes one datagram, whose memory is the session's from now on.
func (s *session) receive(datagram []byte, at time.Time) {
	packet, result := s.joiner.Take(datagram, (*[tunnel.MaxInnerMTU]byte)(&s.scratch), at)
	s.hub.metrics.datagrams.Of(result).Inc()
	switch {
	case result == tunnel.JoinWhole:
		s.judge(packet, nil, s.hub.at(at))
	case result == tunnel.JoinJoined:
		// The scratch is needed for the next one.
		own := buffers.Get().(*buffer)
		s.judge(own[:copy(own[:], packet)], own, s.hub.at(at))
	}
}

// judge does with one packet what the table in force says.
func (s *session) judge(packet []byte, own *buffer, now network.Instant) {
	h := s.hub
	t := h.table.Load()
	s.seat.traffic.fromPackets.Add(1)
	s.seat.traffic.fromBytes.Add(uint64(len(packet)))
	e := entry{packet: packet, own: own, from: s.seat, epoch: t.Epoch()}
	if h.suspended(now) {
		h.lose(&e, nil, policy.CustodySuspended)
		return
	}
	v := t.Judge(packet, s.id, now)
	switch v.Action {
	case policy.Relay:
		to := h.route(v.To.ID)
		if to == nil {
			h.lose(&e, nil, policy.DestinationOffline)
		} else if why, ok := to.out.offer(e); !ok {
			h.lose(&e, to.seat, why)
		}
	case policy.Echo:
		if !s.seat.asks(now) {
			h.lose(&e, nil, policy.EchoRate)
			return
		}
		policy.AnswerEcho(packet)
		e.echo = true
		if why, ok := s.out.offer(e); !ok {
			h.lose(&e, s.seat, why)
		}
	default:
		h.lose(&e, nil, v.Reason)
	}
}

// route returns the session of a membership, nil when it has none. Places are used
// again, so the whole name is compared.
func (h *Hub) route(id policy.ID) *session {
	if s := h.routes[id.Slot()].Load(); s != nil && s.id == id {
		return s
	}
	return nil
}

// lose drops a packet on its way in. to is who it was for, where that is known.
func (h *Hub) lose(e *entry, to *seat, why policy.Reason) {
	h.drop(e.from, why)
	if to != nil {
		to.traffic.toDropped.Add(1)
	}
	e.release()
}
