package hub

import (
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
	"serve.zone/relay/typedsocket"
)

// SessionRegistered tells that Cloudly accepted a registration of the relay on the
// socket. It does not block.
func (h *Hub) SessionRegistered(sock *typedsocket.Socket) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attached, h.upstream = true, sock
	h.clock.Trust(now)
	h.resume.Store(0)
}

// SessionLost tells that the session to Cloudly is gone. The network stays in force,
// and memberships end when their time is over (contract §10.6). It does not block.
func (h *Hub) SessionLost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attached = false
	h.resume.Store(0)
}

// Suspend tells that a refusal was read on a socket to Cloudly that ends custody; in
// an outage, that is a socket on which no registration was accepted yet. From when it
// returns no packet is handed to a tunnel, until DropCustody, SessionLost or the next
// registration, or until suspendWait has passed: a name may be heard that ends
// nothing. A socket other than that of the standing session changes nothing. It does
// not wait.
func (h *Hub) Suspend(sock *typedsocket.Socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attached && h.upstream != sock {
		return
	}
	h.resume.Store(h.now().Mono + suspendWait.Milliseconds())
}

// suspended reports whether custody may be about to end.
func (h *Hub) suspended(now network.Instant) bool { return now.Mono < h.resume.Load() }

// DropCustody empties the hub and closes every connection, confirmed or not. When it
// returns nothing of the old custody leaves any more (contract §6.2): it waits until
// QUIC has forgotten what it held for the members, which no peer can delay. Kept are
// the socket and the key. why is the name of the refusal that ended custody.
func (h *Hub) DropCustody(why string) {
	h.mu.Lock()
	h.custody++ // a network that is being taken over meanwhile is not
	waiting := h.pushes
	h.pushes = nil
	h.attached, h.upstream = false, nil
	h.mu.Unlock()
	for _, x := range waiting {
		h.metrics.networks.Of(pushed, networkNotReady).Inc()
		refuse(x.r, notReady())
	}

	h.applying.Lock()
	h.mu.Lock()
	was := h.table.Load()
	next := policy.Empty(was)
	over := h.enforce(next, endedCustody)
	clear(h.former)
	h.state = state{}
	conns := h.others(over)
	if was.Network() != nil {
		h.publish(CustodyEnded, field.Count(len(over)), field.Revision(was.Revision()), field.Reason(why))
	}
	h.mu.Unlock()
	h.applying.Unlock()

	closeAll(conns, tunnel.CloseNotAdmitted)
	endAll(over)
	h.resume.Store(0)
	h.flush()
}

// others returns the connections that are none of these sessions'. The caller holds
// mu.
func (h *Hub) others(over []leaver) []*quic.Conn {
	sessions := make(map[*quic.Conn]bool, len(over))
	for _, l := range over {
		sessions[l.session.conn] = true
	}
	conns := make([]*quic.Conn, 0, len(h.conns))
	for conn := range h.conns {
		if !sessions[conn] {
			conns = append(conns, conn)
		}
	}
	return conns
}

// closeAll closes connections beside each other, and returns when they are.
func closeAll(conns []*quic.Conn, code tunnel.CloseCode) {
	var all sync.WaitGroup
	for _, conn := range conns {
		all.Go(func() { conn.CloseWithError(code.QUIC(), code.String()) })
	}
	all.Wait()
}

// wake is how long it takes until deadlines must be looked at again.
func (h *Hub) wake() time.Duration {
	wait, ok := h.table.Load().NextExpiry(h.now())
	if !ok {
		return lookEvery
	}
	return min(wait, lookEvery)
}
