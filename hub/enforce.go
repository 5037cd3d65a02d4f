package hub

import (
	"maps"
	"slices"
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// state is how far the hub is with the network in force. It is guarded by Hub.mu.
type state struct {
	applied  int64     // the revision last applied in full, 0 for none (contract O22c)
	applying bool      // the table in force may not be effective everywhere yet
	failed   bool      // the network that was admitted last could not be taken over
	since    time.Time // by the wall clock, when the network in force was admitted
	origin   origin
}

// name is the state as Cloudly is told it.
func (s state) name() contract.VPNNetworkState {
	if s.applying {
		return contract.VPNNetworkApplying
	}
	return contract.VPNNetworkIdle
}

// leaver is a session that has to end.
type leaver struct {
	session *session
	why     sessionEnd
	code    tunnel.CloseCode
}

// displace takes a session's place from it, which then has to end: until it has, an
// apply waits for it, whoever ends it. The caller holds mu, and ends it without.
func (h *Hub) displace(l leaver) leaver {
	h.leaving[l.session] = l
	return l
}

// enforce puts a table in force, which is one atomic store: a packet is judged by
// the table before or by this one. It returns the sessions that have to end. The
// caller holds applying and mu, and waits for the barrier without mu.
func (h *Hub) enforce(next *policy.Table, why sessionEnd) []leaver {
	h.table.Store(next)
	var over []leaver
	for slot, s := range h.seats {
		if s == nil || next.Member(s.id) != nil {
			continue
		}
		h.seats[slot] = nil
		if x := s.session; x != nil {
			l := leaver{x, why, tunnel.CloseNotAdmitted}
			if next.MemberByKey(x.key) != nil {
				// The same key under another address or id: dialling again at once helps.
				l.why, l.code = endedChanged, tunnel.CloseChanged
			}
			over = append(over, h.displace(l))
			s.session = nil
			h.routes[slot].Store(nil)
			h.disconnected(x, l.why)
		}
	}
	for m := range next.Members() {
		if slot := m.ID.Slot(); h.seats[slot] == nil {
			h.seats[slot] = &seat{id: m.ID, node: m.NodeID}
		}
	}
	signal(h.look)
	return over
}

// remember keeps the keys that a network takes away, so that a node which was
// withdrawn is told from one that nobody knows. The caller holds mu.
func (h *Hub) remember(was, next *policy.Table) {
	for m := range was.Members() {
		if len(h.former) >= maxFormerKeys {
			clear(h.former)
		}
		h.former[m.Key] = struct{}{}
	}
	for m := range next.Members() {
		delete(h.former, m.Key)
	}
}

// barrier ends the sessions that have to, also those that another network, a newer
// connection or the time has taken the place from, and returns a channel that is closed
// when nothing leaves any more that the table forbids. It does not wait. The table is in
// force.
func (h *Hub) barrier(t *policy.Table) <-chan struct{} {
	now := h.now()
	var waits []fenced
	for i := range h.routes {
		if s := h.routes[i].Load(); s != nil {
			if wait := s.out.bar(t, s.id, now); wait != nil {
				waits = append(waits, fenced{s, wait})
			}
		}
	}
	over := h.leavers() // behind the routes: none that leaves one meanwhile is missed
	done := make(chan struct{})
	if len(over) == 0 && len(waits) == 0 {
		close(done)
		return done
	}
	h.workers.Go(func() {
		defer close(done)
		failpoint.Reach(failpoint.NetworkFenced)
		endAll(over)
		if len(waits) == 0 {
			return
		}
		if !awaitAll(waits) {
			endStuck(waits)
		}
	})
	return done
}

// leavers returns the sessions that have lost their places and may not have ended.
func (h *Hub) leavers() []leaver {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.leaving))
}

// fenced is a session for which QUIC may still hold what the table forbids.
type fenced struct {
	session *session
	passed  <-chan struct{}
}

// awaitAll reports whether QUIC held it no more, or the sessions had ended, within
// fenceWait.
func awaitAll(waits []fenced) bool {
	timer, urge := time.NewTimer(fenceWait), time.NewTicker(urgeEvery)
	defer timer.Stop()
	defer urge.Stop()
	for next := 0; next < len(waits); {
		select {
		case <-waits[next].passed:
			next++
		case <-urge.C:
			for _, w := range waits[next:] {
				w.session.out.urge()
			}
		case <-timer.C:
			return false
		}
	}
	return true
}

// endStuck ends those that hold it still.
func endStuck(waits []fenced) {
	var over []leaver
	for _, w := range waits {
		select {
		case <-w.passed:
		default:
			over = append(over, leaver{w.session, endedStuck, tunnel.CloseTimeout})
		}
	}
	endAll(over)
}

// endAll ends sessions beside each other, and returns when nothing of them leaves any
// more.
func endAll(over []leaver) {
	var all sync.WaitGroup
	for _, l := range over {
		all.Go(func() { l.session.end(l.why, l.code) })
	}
	all.Wait()
}

// settle notes that a table is effective everywhere, unless another is in force.
func (h *Hub) settle(t *policy.Table) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.table.Load() == t {
		h.state.applying, h.state.applied = false, t.Revision()
	}
}
