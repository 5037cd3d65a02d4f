package envelope

// The functions of this file look at the value at i without moving on: what
// they skip over is read, and judged, by their caller.

// noteNodeID counts a member nodeId of the body that is being read.
func (s *scanner) noteNodeID(i int) {
	if s.side == sideNone {
		return
	}
	ids := &s.bodies[s.side].NodeIDs
	ids.Count++
	switch {
	case ids.Count == 1:
		ids.First, ids.Uniform = s.nodeIDText(i)
	case ids.Uniform:
		end, escaped := s.nodeIDEnd(i)
		ids.Uniform = end >= 0 && hasText(s.text[i+1:end-1], escaped, ids.First)
	}
}

// nodeIDText returns the text of the value at i, and false when it is no
// string that may be a node id.
func (s *scanner) nodeIDText(i int) ([]byte, bool) {
	end, _ := s.nodeIDEnd(i)
	if end < 0 {
		return nil, false
	}
	return s.stringText(i, end)
}

// nodeIDEnd returns the index behind the string at i, negative when the value
// is none or is too long for a node id.
func (s *scanner) nodeIDEnd(i int) (end int, escaped bool) {
	if at(s.text, i) != '"' {
		return -1, false
	}
	return stringEnd(s.text[:min(len(s.text), i+MaxNodeIDBytes+2)], i)
}

// noteStream counts the object that is being read as a stream when the value
// at i, of its member _isVirtualStream, is true. It returns whether it is.
func (s *scanner) noteStream(i int) bool {
	isTrue := hasLiteral(s.text, i, "true")
	if isTrue {
		s.bodies[s.side].Streams++
	}
	return isTrue
}
