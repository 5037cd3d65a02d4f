package hub

import (
	"slices"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// The checks of this duty.
const (
	checkBound   = iota
	checkNetwork // required: idle, or without a network (design §9)
	checkKey     // advice
	checkMembers // advice
	checkSocket  // advice
	numChecks
)

// Checks returns whether the hub is bound, whether its network is effective, whether
// its key lasts, whether every member is in force, and whether the kernel gives its
// socket the buffers that it asks for.
func (h *Hub) Checks(now time.Time) []duty.Check {
	at, socket := h.now(), h.kernel.look(h.metrics.socketDropped)
	h.mu.Lock()
	defer h.mu.Unlock()
	checks := [numChecks]duty.Check{
		checkBound:   {Name: "hub-bound", State: duty.OK, Facts: field.List{field.Address(h.bound)}},
		checkNetwork: {Name: "hub-network", State: duty.OK},
		checkKey:     {Name: "hub-key", Advice: true, State: duty.OK},
		checkMembers: {Name: "hub-members", Advice: true, State: duty.OK},
		checkSocket:  {Name: "hub-socket", Advice: true, State: duty.OK},
	}
	socket.judge(&checks[checkSocket])
	if h.listener == nil {
		c := &checks[checkBound]
		c.State, c.Reason = duty.Failing, "not-bound"
		c.Hint = "The hub's socket is not open."
	}
	t := h.table.Load()
	if t.Network() != nil {
		checks[checkNetwork].Facts = field.List{field.Revision(t.Revision())}
	}
	switch c := &checks[checkNetwork]; {
	case h.state.failed:
		c.State, c.Reason = duty.Failing, "failed"
		c.Hint = "A network could not be taken over: a mistake in the relay. The one before stays in force."
	case h.state.applying:
		c.State, c.Reason = duty.Pending, "applying"
		c.Hint = "A network was admitted, and packets of the one before may still leave towards a member that hardly takes any. It takes 10 seconds at most."
	}
	if h.ephemeral {
		c := &checks[checkKey]
		c.State, c.Reason = duty.Failing, "key-ephemeral"
		c.Hint = "The hub made a key for this start alone; after a restart every node needs a new credential. Name a file in hub-key-file."
	}
	expired := 0
	for m := range t.Members() {
		if m.Deadline.Reached(at) {
			expired++
		}
	}
	if expired > 0 {
		c := &checks[checkMembers]
		c.State, c.Reason = duty.Failing, "members-expired"
		c.Hint = "The time of members is over and Cloudly has not renewed it. Look at the session to Cloudly and at the clocks."
		c.Facts = field.List{field.Count(expired)}
	}
	for n := range checks {
		if checks[n] = checks[n].After(h.shown[n]); checks[n].Since.IsZero() {
			checks[n].Since = now
		}
		h.shown[n] = checks[n]
	}
	return slices.Clone(checks[:])
}
