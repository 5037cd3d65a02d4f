package operator

import (
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

var _ duty.Duty = (*Operator)(nil)

// Name returns the duty's name.
func (o *Operator) Name() string { return Name }

// Checks says, as advice, whether the endpoint is bound and has room. That the
// relay is leaving is required: a check that is advice until SetDraining and
// fails from then on. So the operator alone never makes a relay ready.
func (o *Operator) Checks(time.Time) []duty.Check {
	o.mu.Lock()
	s, since, bound, left := o.state, o.since, o.bound, o.draining
	o.mu.Unlock()
	return []duty.Check{stayingCheck(o.started, left), boundCheck(s, since, field.Address(bound)), roomCheck(o.connections())}
}

func stayingCheck(started, left time.Time) duty.Check {
	if left.IsZero() {
		return duty.Check{Name: "staying", Advice: true, State: duty.OK, Since: started}
	}
	return duty.Check{Name: "staying", State: duty.Failing, Reason: "draining", Since: left,
		Hint: "The relay is leaving; nothing is to be done unless it should stay."}
}

func boundCheck(s state, since time.Time, address field.Field) duty.Check {
	check := duty.Check{Name: "bound", Advice: true, State: duty.Failing, Reason: s.String(), Since: since, Facts: []field.Field{address}}
	switch s {
	case starting:
		check.State = duty.Pending
		check.Hint = "The operator endpoint is not bound yet."
	case serving:
		check.State, check.Reason = duty.OK, ""
	case failed:
		check.Hint = "The operator endpoint could not be bound or stopped accepting; see the log, and restart the relay."
	case draining, closed:
		check.Hint = "The relay is leaving and answers no more requests."
	}
	return check
}

func roomCheck(connections Level) duty.Check {
	check := duty.Check{Name: "connections", Advice: true, State: duty.OK,
		Facts: []field.Field{field.Count(connections.Open), field.Limit(connections.Limit)}}
	if connections.Open >= connections.Limit {
		check.State, check.Reason = duty.Failing, "full"
		check.Hint = "As many connections are open as there may be, so only probes are answered on further ones; find out who holds them."
	}
	return check
}

// Status is the operator endpoint's part of the status document.
type Status struct {
	State       string `json:"state"`             // starting, serving, failed, draining, closed
	Address     string `json:"address,omitempty"` // what was bound
	Connections Level  `json:"connections"`
	Answers     Level  `json:"answers"`  // large ones that are being made or written
	Polls       Level  `json:"polls"`    // requests that wait for an event
	Requests    uint64 `json:"requests"` // answered since the start, refused ones included
}

// Level is how many of a bounded number there are.
type Level struct {
	Open  int `json:"open"`
	Limit int `json:"limit"`
}

// Status returns a Status.
func (o *Operator) Status() any {
	o.mu.Lock()
	status := Status{State: o.state.String()}
	if o.bound.IsValid() {
		status.Address = o.bound.String()
	}
	o.mu.Unlock()
	status.Connections = o.connections()
	status.Answers, status.Polls = o.answers.level(), o.polls.level()
	status.Requests = o.metrics.answered()
	return status
}

// connections tells how many are open, those in reserve too.
func (o *Operator) connections() Level {
	return Level{Open: int(o.metrics.connections.Value()), Limit: maxConnections}
}

// DropCustody does nothing: the endpoint holds nothing of a custody, and every
// answer is made from what the duties hold when it is asked for.
func (o *Operator) DropCustody(string) {}
