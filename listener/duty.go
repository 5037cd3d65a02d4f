package listener

import (
	"cmp"
	"slices"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// Name returns the duty's name.
func (l *Listener) Name() string { return Name }

// Checks says whether the listener is bound. That no place is left is advice.
func (l *Listener) Checks(time.Time) []duty.Check {
	l.mu.Lock()
	defer l.mu.Unlock()
	bound, sockets := boundCheck(l.state), socketsCheck(l.slots)
	bound.Since, sockets.Since = l.since, l.slotsSince
	bound.Facts = []field.Field{field.Address(l.bound)}
	return []duty.Check{bound, sockets}
}

func boundCheck(s state) duty.Check {
	check := duty.Check{Name: "bound", State: duty.Failing, Reason: s.String()}
	switch s {
	case starting:
		check.State = duty.Pending
		check.Hint = "The node listener is not bound yet."
	case serving:
		check.State, check.Reason = duty.OK, ""
	case failed:
		check.Hint = "The node listener could not be bound or stopped accepting; see the log, and restart the relay."
	case draining, closed:
		check.Hint = "The relay is leaving and takes no new sockets."
	}
	return check
}

func socketsCheck(slots int) duty.Check {
	check := duty.Check{Name: "sockets", Advice: true, State: duty.OK,
		Facts: []field.Field{field.Count(slots), field.Limit(maxSockets)}}
	if slots >= maxSockets {
		check.State, check.Reason = duty.Failing, "full"
		check.Hint = "As many sockets stand as there may be; find out who opens them in the status."
	}
	return check
}

// Status is the listener's part of the status document.
type Status struct {
	State       string         `json:"state"`             // starting, serving, failed, draining, closed
	Address     string         `json:"address,omitempty"` // what was bound
	Connections Level          `json:"connections"`
	Sockets     Level          `json:"sockets"` // and handshakes under way
	Unbound     int            `json:"unbound"` // sockets without a role
	Bound       []SocketStatus `json:"bound"`   // sockets with a role, by node and age
}

// Level is how many of a bounded number there are.
type Level struct {
	Open  int `json:"open"`
	Limit int `json:"limit"`
}

// SocketStatus is what is known of one socket. Two of one node show a node that
// dials from two places (B055).
type SocketStatus struct {
	Role        string    `json:"role"`
	Node        string    `json:"node"`
	Address     string    `json:"address,omitempty"`
	Since       time.Time `json:"since"`
	FramesIn    uint64    `json:"framesIn"`
	FramesOut   uint64    `json:"framesOut"`
	BytesIn     uint64    `json:"bytesIn"`
	BytesOut    uint64    `json:"bytesOut"`
	Serving     int       `json:"serving"`     // its requests that wait for an answer
	Pending     int       `json:"pending"`     // requests to it that wait for its answer
	QueuedBytes int       `json:"queuedBytes"` // memory of what waits to be sent to it
	Overloaded  uint64    `json:"overloaded"`  // its requests that were refused because too many were in flight
}

// Status returns a Status.
func (l *Listener) Status() any {
	l.mu.Lock()
	status := Status{
		State:       l.state.String(),
		Connections: Level{Open: int(l.metrics.connections.Value()), Limit: maxConnections},
		Sockets:     Level{Open: l.slots, Limit: maxSockets},
		Bound:       []SocketStatus{},
	}
	if l.bound.IsValid() {
		status.Address = l.bound.String()
	}
	l.mu.Unlock()
	for _, c := range l.sockets() {
		if c.currentRole() == unbound {
			status.Unbound++
			continue
		}
		status.Bound = append(status.Bound, c.status())
	}
	slices.SortFunc(status.Bound, func(a, b SocketStatus) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.Since.Compare(b.Since))
	})
	return status
}

func (c *Conn) status() SocketStatus {
	r, nodeID := c.binding()
	s := c.sock.Stats()
	status := SocketStatus{
		Role: r.String(), Node: nodeID, Since: c.since.UTC(),
		FramesIn: s.FramesIn, FramesOut: s.FramesOut, BytesIn: s.BytesIn, BytesOut: s.BytesOut,
		Serving: s.Serving, Pending: s.Pending, QueuedBytes: s.QueuedOwn + s.QueuedFlow, Overloaded: s.Overloaded,
	}
	if c.address.IsValid() {
		status.Address = c.address.String()
	}
	return status
}
