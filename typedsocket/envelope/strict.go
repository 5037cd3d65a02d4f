package envelope

// place is the kind of a level of the frame: what it is held to, and what its
// members mean.
type place uint8

const (
	placeLoose        place = iota // well-formed; nodeId and stream markers count
	placeEnvelope                  // the frame's object
	placeCorrelation               // correlation
	placeFailure                   // error and retry
	placeBody                      // request and response
	placeSession                   // session of a body
	placeSessionInner              // anything inside session
)

// within is the place of what stands in a member, or an element, of p that has
// no place of its own.
func (p place) within() place {
	if p == placeSession || p == placeSessionInner {
		return placeSessionInner
	}
	return placeLoose
}

// refusesProto says whether __proto__ is refused as a name: where a receiver
// in JavaScript may copy members one by one (design O1).
func (p place) refusesProto() bool {
	return p == placeEnvelope || p == placeSession || p == placeSessionInner
}

// object reads the object at i, a strict level at the given depth.
func (s *scanner) object(i, depth int, p place) int {
	if depth > MaxDepth {
		return s.fail(RuleDepth, i)
	}
	names := &s.frame.names
	lv := names.open()
	i = space(s.text, i+1)
	if at(s.text, i) == '}' {
		return i + 1
	}
	for {
		member, value := s.name(i, p, lv)
		if value < 0 {
			return value
		}
		if i = s.member(member, value, depth, p); i < 0 {
			return i
		}
		i = space(s.text, i)
		switch at(s.text, i) {
		case ',':
			i = space(s.text, i+1)
		case '}':
			if duplicate := names.close(lv, s.text); duplicate >= 0 {
				return s.fail(RuleDuplicateName, duplicate)
			}
			return i + 1
		default:
			return s.fail(RuleSyntax, i)
		}
	}
}

// array reads the array at i, a strict level at the given depth.
func (s *scanner) array(i, depth int, p place) int {
	if depth > MaxDepth {
		return s.fail(RuleDepth, i)
	}
	i = space(s.text, i+1)
	if at(s.text, i) == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth, p.within()); i < 0 {
			return i
		}
		i = space(s.text, i)
		switch at(s.text, i) {
		case ',':
			i = space(s.text, i+1)
		case ']':
			return i + 1
		default:
			return s.fail(RuleSyntax, i)
		}
	}
}

// name reads the name at i on a level of place p, and the colon behind it. It
// returns the text of the name and the index of the value.
func (s *scanner) name(i int, p place, lv level) (text []byte, value int) {
	if at(s.text, i) != '"' {
		return nil, s.fail(RuleSyntax, i)
	}
	end, escaped := s.strictString(i)
	if end < 0 {
		return nil, end
	}
	text, rule := s.frame.names.push(lv, s.text, i, s.text[i+1:end-1], escaped)
	if rule != 0 {
		return nil, s.fail(rule, i)
	}
	if p.refusesProto() && string(text) == "__proto__" {
		return nil, s.fail(RuleForbiddenName, i)
	}
	if i = space(s.text, end); at(s.text, i) != ':' {
		return nil, s.fail(RuleSyntax, i)
	}
	return text, space(s.text, i+1)
}

// value reads the value at i that stands directly in a strict level of the
// given depth; within is the place of the level it may open.
func (s *scanner) value(i, depth int, within place) int {
	c := at(s.text, i)
	switch {
	case c == '"':
		end, _ := s.strictString(i)
		return end
	case c == '{' && within != placeLoose:
		return s.object(i, depth+1, within)
	case c == '[' && within != placeLoose:
		return s.array(i, depth+1, within)
	}
	return s.loose(i, depth)
}

// strictString reads a string that must be text.
func (s *scanner) strictString(i int) (end int, escaped bool) {
	end, escaped = stringEnd(s.text, i)
	if end < 0 {
		return s.syntax(end), escaped
	}
	if escaped {
		if lone := loneSurrogate(s.text[i+1 : end-1]); lone >= 0 {
			return s.fail(RuleLoneSurrogate, i+1+lone), escaped
		}
	}
	return end, escaped
}
