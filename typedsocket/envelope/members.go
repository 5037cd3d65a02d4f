package envelope

import "bytes"

// The names that are looked for in every object of a body.
const (
	nameNodeID = "nodeId"
	nameStream = "_isVirtualStream"
)

// member reads the value at i of the member of that name in a strict level of
// the given place and depth.
func (s *scanner) member(name []byte, i, depth int, p place) int {
	switch p {
	case placeEnvelope:
		return s.envelopeMember(name, i, depth)
	case placeCorrelation:
		return s.correlationMember(name, i, depth)
	case placeFailure:
		return s.failureMember(name, i, depth)
	case placeBody:
		return s.bodyMember(name, i, depth)
	}
	return s.sessionMember(name, i, depth, p)
}

func (s *scanner) envelopeMember(name []byte, i, depth int) int {
	f, end := s.frame, -1
	switch string(name) {
	case "method":
		if end = s.value(i, depth, placeLoose); end >= 0 && s.text[i] == '"' {
			end = s.method(i, end)
		}
	case "requestInstanceId":
		f.instancePresent = true
		if end = s.value(i, depth, placeLoose); end >= 0 && s.text[i] == '"' {
			end = s.id(i, end, &f.Instance, &f.InstanceToken)
		}
	case "correlation":
		end = s.value(i, depth, placeCorrelation)
	case "request":
		f.RequestAt = i
		end = s.body(i, depth, sideRequest, &f.Request)
	case "response":
		f.ResponseAt = i
		end = s.body(i, depth, sideResponse, &f.Response)
	case "error":
		if end = s.value(i, depth, placeFailure); end >= 0 {
			f.Error = s.text[i:end:end]
		}
	case "retry":
		if end = s.value(i, depth, placeFailure); end >= 0 {
			f.Retry = s.text[i:end:end]
		}
	case "localData":
		f.HasLocalData = true
		end = s.value(i, depth, placeLoose)
	default:
		end = s.value(i, depth, placeLoose)
	}
	return end
}

func (s *scanner) correlationMember(name []byte, i, depth int) int {
	f := s.frame
	end := s.value(i, depth, placeLoose)
	if end < 0 {
		return end
	}
	isString := s.text[i] == '"'
	switch string(name) {
	case "id":
		if isString {
			return s.id(i, end, &f.ID, &f.IDToken)
		}
	case "phase":
		f.Phase = PhaseOther
		if isString {
			f.Phase = phaseOf(s.text[i+1 : end-1])
		}
	}
	return end
}

func phaseOf(raw []byte) Phase {
	escaped := bytes.IndexByte(raw, '\\') >= 0
	switch {
	case hasText(raw, escaped, "request"):
		return PhaseRequest
	case hasText(raw, escaped, "response"):
		return PhaseResponse
	}
	return PhaseOther
}

// body reads the value of request or response into *value.
func (s *scanner) body(i, depth int, side side, value *[]byte) int {
	if s.opaque {
		end := s.loose(i, depth)
		if end >= 0 {
			*value = s.text[i:end:end]
		}
		return end
	}
	s.side = side
	end := s.value(i, depth, placeBody)
	if end >= 0 {
		s.side = sideNone // after a failure it says where that was
		*value = s.text[i:end:end]
		s.bodies[side].Object = s.text[i] == '{'
	}
	return end
}

func (s *scanner) bodyMember(name []byte, i, depth int) int {
	body := &s.bodies[s.side]
	switch string(name) {
	case nameNodeID:
		s.noteNodeID(i)
		body.NodeID, _ = s.nodeIDText(i)
	case nameStream:
		s.noteStream(i)
	case "session":
		end := s.value(i, depth, placeSession)
		if end >= 0 {
			body.Session = s.text[i:end:end]
		}
		return end
	}
	return s.value(i, depth, placeLoose)
}

func (s *scanner) sessionMember(name []byte, i, depth int, p place) int {
	switch string(name) {
	case nameNodeID:
		s.noteNodeID(i)
		if p == placeSession {
			s.bodies[s.side].SessionNodeID, _ = s.nodeIDText(i)
		}
	case nameStream:
		s.noteStream(i)
	}
	return s.value(i, depth, p.within())
}

// method takes the string text[i:end] as the method.
func (s *scanner) method(i, end int) int {
	const longest = 6 * MaxMethodBytes // written with nothing but escapes
	if end-i-2 <= longest {
		s.frame.Method, _ = s.stringText(i, end)
	}
	if end-i-2 > longest || len(s.frame.Method) > MaxMethodBytes {
		return s.fail(RuleTextTooLong, i)
	}
	return end
}

// id takes the string text[i:end] as an id.
func (s *scanner) id(i, end int, text, token *[]byte) int {
	if end-i-2 > MaxIDBytes {
		return s.fail(RuleTextTooLong, i)
	}
	*text, _ = s.stringText(i, end)
	*token = s.text[i:end:end]
	return end
}

// stringText returns the text of the string text[i:end], in memory of its own
// when that is written with escapes, and false when a lone surrogate leaves it
// without one.
func (s *scanner) stringText(i, end int) ([]byte, bool) {
	raw := s.text[i+1 : end-1 : end-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, true
	}
	text, ok := unescape(make([]byte, 0, len(raw)), raw)
	if !ok {
		return nil, false
	}
	return text[:len(text):len(text)], true
}
