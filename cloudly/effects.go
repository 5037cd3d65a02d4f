package cloudly

import (
	"context"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// LostError says why a session is over.
type LostError struct {
	Reason string // a name: of a trouble, of a custody refusal, or "stopped"
	Cause  error  // what the call or the socket ended with; nil when nothing failed
}

func (e *LostError) Error() string {
	if e.Cause == nil {
		return "cloudly session lost: " + e.Reason
	}
	return "cloudly session lost: " + e.Reason + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Cause }

// LogName returns the reason for a log line.
func (e *LostError) LogName() string { return e.Reason }

// execute carries one effect out. m is what led to it.
func (s *Session) execute(e effect, m *mail) {
	a := s.attempt
	switch e.kind {
	case doDial:
		s.begin()
	case doExchange:
		bearer := m.bearer
		s.task(a, func() mail { return s.exchangeBearer(a, bearer) })
	case doAuthenticate:
		s.task(a, func() mail { return s.authenticateSocket(a) })
	case doRegister:
		s.registerRelay(a, e.sequence)
	case doEnter:
		s.accepted(a, m, true)
		a.gate.open()
	case doConfirm:
		s.accepted(a, m, false)
	case doPull:
		s.pullAll(a)
	case doPullConfiguration:
		s.pullConfiguration(a)
	case doConfigure:
		if hook := s.cfg.Hooks.OnConfiguration; hook != nil {
			hook(*m.config)
		}
	case doShut:
		s.shut(a)
	case doEndCustody:
		s.endCustody(e.name)
	case doDropFlows:
		a.sock.DropFlows(typedsocket.CloseCustodyEnded, "custody ended")
	case doLose:
		s.lost(m)
	case doClose:
		s.leave(a, (*typedsocket.Socket).Close, typedsocket.CloseNormal, "the relay leaves this socket")
	case doCut:
		s.leave(a, (*typedsocket.Socket).Cut, typedsocket.CloseCustodyEnded, "custody ended")
	case doLookAtCredential:
		s.keeper.glanceSoon()
	}
}

// begin starts an attempt. The socket of the one before is gone before it dials.
func (s *Session) begin() {
	if s.quiet.Load() {
		return // the end is near, and nothing else is left to happen in this phase
	}
	var before *typedsocket.Socket
	if s.attempt != nil {
		before = s.attempt.sock
		s.attempt.cancel()
	}
	a := &attempt{epoch: s.state.epoch}
	a.ctx, a.cancel = context.WithCancel(s.ctx)
	a.gate = newGate(s.cfg.Handler, func(name contract.RefusalName) {
		why := turnedNotReady
		if name == contract.RelayOverloaded {
			why = turnedOverloaded
		}
		s.metrics.turnedAway.Of(why).Inc()
	}, s.guard)
	s.attempt = a
	s.task(a, func() mail { return s.dial(a, before) })
}

// guard calls f and reports whether it returned; a panic is logged.
func (s *Session) guard(f func()) (returned bool) {
	defer func() { s.cfg.Log.Recovered(recover(), field.Duty(Name)) }()
	f()
	return true
}

// task runs one step of an attempt and posts what came of it.
func (s *Session) task(a *attempt, run func() mail) {
	a.running++
	s.tasks.Go(func() {
		m := mail{event: event{kind: evUnanswered}, trouble: socketLost, err: errPanicked}
		s.guard(func() { m = run() })
		m.epoch, m.step = a.epoch, true
		if !s.post(m) {
			s.discard(m)
		}
	})
}

// accepted takes over an accepted registration and tells of it.
func (s *Session) accepted(a *attempt, m *mail, first bool) {
	s.reads.Add(1)
	if hook := s.cfg.Hooks.OnRegistered; hook != nil {
		hook(a.sock, Accepted{First: first, Sequence: m.answer.sequence, Answer: m.answer.RelayRegistrationAnswer})
	}
}

// shut ends the service of requests and all pulls on a socket.
func (s *Session) shut(a *attempt) {
	a.gate.shut()
	if a.pulls != nil {
		a.pulls.cancel()
		s.ending, a.pulls = a.pulls, nil
	}
}

// settlePulls waits for pulls that were told to end. Nothing that must happen at
// once waits for them.
func (s *Session) settlePulls() {
	p := s.ending
	if p == nil {
		return
	}
	s.ending = nil
	if !p.end() {
		s.metrics.stuckPulls.Inc()
		s.publish(EventPullStuck)
	}
}

// endCustody has everything dropped that is held for nodes.
func (s *Session) endCustody(name contract.RefusalName) {
	s.metrics.custody.Of(custodyLabelOf(name)).Inc()
	s.DropCustody(string(name))
	if hook := s.cfg.Hooks.OnCustodyEnded; hook != nil {
		hook(name)
		if s.ending != nil && s.ending.busy() {
			// What a pull took over while it was told to end goes as well.
			s.settlePulls()
			hook(name)
		}
	}
	s.publish(EventCustodyEnded, field.Refusal(name))
}

// lost tells that the session is over.
func (s *Session) lost(m *mail) {
	failpoint.Reach(failpoint.LossSeen)
	s.metrics.lost.Inc()
	why := &LostError{Reason: reasonOf(m), Cause: m.err}
	if hook := s.cfg.Hooks.OnLost; hook != nil {
		hook(why)
	}
	s.publish(EventSessionLost, field.Reason(why.Reason), field.Error(m.err), closeCodeOf(m.err))
}

// reasonOf names what an event did to the session.
func reasonOf(m *mail) string {
	switch {
	case m.ended != "":
		return string(m.ended)
	case m.kind == evStop:
		return "stopped"
	}
	return m.trouble.String()
}

// leave closes the socket of an attempt, for good or bad.
func (s *Session) leave(a *attempt, end func(*typedsocket.Socket, typedsocket.CloseCode, string), code typedsocket.CloseCode, why string) {
	a.cancel()
	a.identity.forget()
	end(a.sock, code, why)
}
