package envelope

// loose reads the value at i, which stands in a level of the given depth,
// judging nothing but its grammar and depth. This is where nearly all bytes of
// nearly all frames are read: one loop, no recursion, and for each open level
// one bit that says whether it is an object, and one whether it has already
// been counted as a stream.
func (s *scanner) loose(i, depth int) int {
	text, outer := s.text, depth
	var objects, streams uint64 // bit d-1 belongs to depth d
	for {
		switch at(text, i) {
		case '"':
			end, _ := stringEnd(text, i)
			i = end
		case '{', '[':
			if depth == MaxDepth {
				return s.fail(RuleDepth, i)
			}
			opener := text[i]
			i = space(text, i+1)
			if at(text, i) == opener+2 { // closed at once: ASCII puts '}' and ']' two behind their openers
				i++
				break
			}
			bit := uint64(1) << depth
			depth++
			if opener == '[' {
				objects &^= bit
				continue
			}
			objects |= bit
			streams &^= bit
			if i = s.looseName(i, bit, &streams); i < 0 {
				return i
			}
			continue
		default:
			i = scalarEnd(text, i)
		}
		if i < 0 {
			return s.syntax(i)
		}
		// A value has ended: so may have the levels around it.
		for {
			if depth == outer {
				return i
			}
			i = space(text, i)
			bit := uint64(1) << (depth - 1)
			inObject := objects&bit != 0
			c := at(text, i)
			if c == ',' {
				i = space(text, i+1)
				if inObject {
					if i = s.looseName(i, bit, &streams); i < 0 {
						return i
					}
				}
				break
			}
			if c != '}' && c != ']' || (c == '}') != inObject {
				return s.fail(RuleSyntax, i)
			}
			i++
			depth--
		}
	}
}

// looseName reads the name at i and the colon behind it and returns the index
// of the value. bit is the bit of the object in streams.
func (s *scanner) looseName(i int, bit uint64, streams *uint64) int {
	text := s.text
	if at(text, i) != '"' {
		return s.fail(RuleSyntax, i)
	}
	end, escaped := stringEnd(text, i)
	if end < 0 {
		return s.syntax(end)
	}
	colon := space(text, end)
	if at(text, colon) != ':' {
		return s.fail(RuleSyntax, colon)
	}
	value := space(text, colon+1)
	raw := text[i+1 : end-1]
	if !escaped && len(raw) != len(nameNodeID) && len(raw) != len(nameStream) {
		return value
	}
	switch {
	case hasText(raw, escaped, nameNodeID):
		s.noteNodeID(value)
	case *streams&bit == 0 && hasText(raw, escaped, nameStream) && s.noteStream(value):
		*streams |= bit
	}
	return value
}
