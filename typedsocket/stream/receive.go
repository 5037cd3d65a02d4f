package stream

import "serve.zone/relay/typedsocket/buffer"

// Receive takes one binary message from the socket's reader, and ownership of
// its buffer. It never blocks. It returns nil, or a FrameError when the
// message is no frame, or a ProtocolError when the peer broke a rule (the
// stream concerned has ended then, and the peer was told), or what Close was
// given. None of them obliges the socket to close.
func (m *Mux) Receive(b *buffer.Buffer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, err := m.dispatch(b)
	if !kept {
		b.Release()
	}
	return err
}

// dispatch handles one message. It reports whether the buffer was kept.
func (m *Mux) dispatch(b *buffer.Buffer) (kept bool, err error) {
	if m.closed != nil {
		return false, m.closed
	}
	f, err := readFrame(b.Bytes())
	if err != nil {
		m.stats.ForeignFrames++
		return false, err
	}
	s := m.open[f.number]
	if f.kind == kindOpenAck {
		return false, m.opened(f, s)
	}
	if s == nil {
		return false, m.stray(f)
	}
	if rule := judge(f, s.standing()); rule != "" {
		return false, s.breach(f, rule, nil)
	}
	switch f.kind {
	case kindData:
		return s.takeData(f, b), nil
	case kindEnd:
		s.takeEnd()
	case kindCredit:
		s.takeCredit(f.value)
	case kindAccept:
		return false, s.takeAccept(f)
	case kindReject:
		s.finish(OutcomeRejected, &RejectedError{Peer: m.cfg.Peer, Reason: string(f.payload), Remote: true})
	case kindAbort:
		s.finish(OutcomeAborted, &AbortedError{Peer: m.cfg.Peer, Reason: string(f.payload), Remote: true})
	}
	return false, nil
}

// opened handles an open-ack. s is the open stream of that number, nil as a rule.
func (m *Mux) opened(f frame, s *Stream) error {
	if s != nil {
		return s.breach(f, RuleOpenedTwice, nil)
	}
	if m.ours(f.number) || f.number <= m.highest {
		return m.refuse(f, RuleNumberNotNew)
	}
	m.highest = f.number
	if rule := judgeShape(f); rule != "" {
		return m.refuse(f, rule)
	}
	m.opens = true
	s = m.offered[string(f.payload)]
	if s == nil {
		// No fault of the peer's: we may have given the stream up while its
		// open-ack was on its way.
		m.stats.LateFrames++
		m.answerStray(f, ReasonNotOffered)
		return nil
	}
	delete(m.offered, s.id)
	s.begin(f.number)
	if s.direction == Send {
		s.permit = f.value
		s.progressed()
		return nil
	}
	if f.value != 0 {
		return s.breach(f, RuleValue, nil)
	}
	s.grant(uint64(m.cfg.Window))
	return nil
}

// ours reports whether this side allots the number.
func (m *Mux) ours(number uint32) bool { return number%2 == m.next%2 }

// stray handles a frame for a number that is not open.
func (m *Mux) stray(f frame) error {
	allotted := f.number <= m.highest
	if m.ours(f.number) {
		allotted = f.number < m.next
	}
	if !allotted {
		return m.refuse(f, RuleNumberUnknown)
	}
	m.stats.LateFrames++
	return nil
}

// refuse answers a frame that breaks a rule and belongs to no stream.
func (m *Mux) refuse(f frame, rule Rule) error {
	m.stats.ProtocolErrors++
	if !f.kind.terminal() {
		m.answerStray(f, string(rule))
	}
	return &ProtocolError{Peer: m.cfg.Peer, Number: f.number, Kind: f.kind, Rule: rule}
}

// answerStray tells the peer that a number means nothing here. A lost answer
// costs nothing, so neither a full queue nor the bound matters.
func (m *Mux) answerStray(f frame, reason string) {
	if m.strays == MaxStrayAnswers {
		return
	}
	m.strays++
	m.control(kindAbort, f.number, 0, reason)
}

// breach ends a stream because its peer broke a rule.
func (s *Stream) breach(f frame, rule Rule, cause error) error {
	s.m.stats.ProtocolErrors++
	if !f.kind.terminal() {
		s.m.control(kindAbort, s.number, 0, string(rule))
	}
	err := &ProtocolError{Peer: s.m.cfg.Peer, Number: s.number, Kind: f.kind, Rule: rule, Cause: cause}
	s.finish(OutcomeProtocol, err)
	return err
}
