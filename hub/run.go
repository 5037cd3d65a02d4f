package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/tunnel"
)

// Run takes connections and ends memberships whose time is over, until ctx ends;
// then it closes everything and waits for it. It returns an error when the socket
// failed of its own accord.
func (h *Hub) Run(ctx context.Context) error {
	h.mu.Lock()
	listener := h.listener
	h.mu.Unlock()
	if listener == nil {
		return errors.New("hub: run before bind")
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	h.workers.Go(func() {
		defer cancel()
		for {
			conn, err := listener.Accept(inner)
			if err != nil {
				if inner.Err() == nil && !h.stopping() {
					failed = fmt.Errorf("hub: accept: %w", err)
				}
				return
			}
			h.workers.Go(func() { h.serve(conn) })
		}
	})
	h.watch(inner)
	err := h.Close()
	return errors.Join(failed, err)
}

// watch looks at deadlines with every network and when the next is due, at least every
// second: the wall clock can be set. It tends the sessions at a pace of its own, which no
// number of networks changes.
func (h *Hub) watch(ctx context.Context) {
	deadlines, sessions := time.NewTimer(0), time.NewTicker(lookEvery)
	defer deadlines.Stop()
	defer sessions.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sessions.C:
			h.guardedLook(h.tend)
			continue
		case <-deadlines.C:
		case <-h.look:
		}
		h.guardedLook(h.expire)
		deadlines.Reset(h.wake())
	}
}

// guardedLook looks once. A panic costs that look.
func (h *Hub) guardedLook(look func()) {
	defer func() { h.cfg.Log.Recovered(recover(), field.Duty(Name)) }()
	look()
}

// expire ends the sessions of members whose time is over (contract §10.6). Their
// packets have been dropped from the instant on, whenever this comes.
func (h *Hub) expire() {
	now := h.now()
	var over []leaver
	h.mu.Lock()
	t := h.table.Load()
	for slot, s := range h.seats {
		if s == nil {
			continue
		}
		m := t.Member(s.id)
		ended := m != nil && m.Deadline.Reached(now)
		if ended && !s.expired {
			h.publish(MemberExpired, field.Node(s.node), field.Expires(time.UnixMilli(m.Deadline.Wall)))
		}
		s.expired = ended
		if ended && s.session != nil {
			over = append(over, h.displace(leaver{s.session, endedExpired, tunnel.CloseNotAdmitted}))
			h.disconnected(s.session, endedExpired)
			s.session = nil
			h.routes[slot].Store(nil)
		}
	}
	h.mu.Unlock()
	endAll(over)
	h.flush()
}

// tend looks at the paths of all sessions, at the parts that wait in them, and at
// memory that bursts have left behind.
func (h *Hub) tend() {
	now := time.Now()
	h.kernel.look(h.metrics.socketDropped)
	for i := range h.routes {
		if s := h.routes[i].Load(); s != nil {
			s.joiner.Expire(now)
			s.out.trim()
			if changed := s.measure(); s.sends() || changed {
				s.tellSize()
			}
		}
	}
}

// Close ends everything at once, and waits for it. Run calls it; it is for a hub that
// was bound and never run.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	listener, transport, socket := h.listener, h.transport, h.socket
	h.listener, h.transport, h.socket = nil, nil, nil
	conns := h.others(nil)
	h.mu.Unlock()
	if transport == nil {
		return nil
	}
	closeAll(conns, tunnel.CloseDraining)
	err := errors.Join(listener.Close(), transport.Close(), socket.Close())
	h.workers.Wait()
	h.flush()
	return err
}
