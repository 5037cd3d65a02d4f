package hub

import (
	"sync"
	"sync/atomic"

	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
)

// seat is one membership: what outlives the connections of its member.
type seat struct {
	id      policy.ID
	node    string
	traffic traffic

	echoMu sync.Mutex // guards echo: an old connection is read beside the newest one
	echo   policy.EchoBudget

	// Guarded by Hub.mu.
	session  *session
	switches switcher
	expired  bool // its end was told
	sessions uint64
}

// traffic is counted where packets pass.
type traffic struct {
	fromPackets, fromBytes atomic.Uint64 // that came out of its tunnel, dropped ones included
	toPackets, toBytes     atomic.Uint64 // that were handed to its tunnel
	toDropped              atomic.Uint64 // that were to go there, and were dropped on this side
	dropped                [policy.Reasons]atomic.Uint64
}

// asks reports whether one more echo request of the member is answered.
func (s *seat) asks(now network.Instant) bool {
	s.echoMu.Lock()
	defer s.echoMu.Unlock()
	return s.echo.Take(now)
}

// drop counts a packet of a member that was dropped.
func (h *Hub) drop(from *seat, why policy.Reason) {
	from.traffic.dropped[why].Add(1)
	h.metrics.drops.Of(why).Inc()
}
