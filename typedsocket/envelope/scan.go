package envelope

import "unicode/utf8"

// Scan reads a frame into f. It refuses, with a *[ScanError], whatever breaks
// a rule of the package, and leaves f empty then. A well-formed object that is
// no envelope is not an error: [Frame.Kind] tells.
//
// Of several broken rules it reports one: invalid UTF-8 before all others,
// then the first in the order of the text, where a duplicate name counts at
// the end of its object when that has more than 16 names.
func Scan(text []byte, f *Frame) error {
	f.Reset()
	s := scanner{text: text, frame: f}
	if s.document() < 0 {
		f.Reset()
		return &ScanError{Rule: s.rule, Offset: s.offset, InBody: s.side != sideNone && s.rule.ofBodies()}
	}
	switch f.Phase {
	case PhaseRequest:
		f.Body = s.bodies[sideRequest]
	case PhaseResponse:
		f.Body = s.bodies[sideResponse]
	}
	f.names = f.names.emptied()
	return nil
}

// Salvage reads into f the envelope of a text that Scan refused for the inside of a
// body (ScanError.InBody): so the sender can be told which of its messages was
// refused, and why. It reports whether there is one. Bodies are walked over for
// well-formedness alone: Body stays empty, and neither Request nor Response may be
// used or sent on.
func Salvage(text []byte, f *Frame) bool {
	f.Reset()
	s := scanner{text: text, frame: f, opaque: true}
	if s.document() < 0 {
		f.Reset()
		return false
	}
	f.names = f.names.emptied()
	return true
}

// side is the body that is being read. Facts about both are collected, since
// the phase may come last.
type side uint8

const (
	sideNone side = iota
	sideRequest
	sideResponse
	sides
)

// scanner is one walk over a text. Its methods take the index they start at
// and return the index behind what they read, or -1 after fail.
type scanner struct {
	text    []byte
	frame   *Frame
	side    side
	bodies  [sides]Body
	opaque  bool // bodies are walked over for well-formedness alone
	failure failure
	rule    Rule
	offset  int
}

func (s *scanner) fail(rule Rule, offset int) int {
	s.rule, s.offset = rule, offset
	return -1
}

// syntax turns the negative result of a token function into a failure.
func (s *scanner) syntax(end int) int {
	if end < 0 {
		return s.fail(RuleSyntax, ^end)
	}
	return end
}

// document reads the whole text as one envelope.
func (s *scanner) document() int {
	if i := s.encoding(); i < 0 {
		return i
	}
	i := space(s.text, 0)
	switch c := at(s.text, i); {
	case c == '{':
	case c == '[' || c == '"' || scalarEnd(s.text, i) >= 0:
		return s.fail(RuleNotAnObject, i)
	default:
		return s.fail(RuleSyntax, i)
	}
	return s.end(s.object(i, 1, placeEnvelope))
}

// encoding checks what holds for the text as a whole.
func (s *scanner) encoding() int {
	if len(s.text) > MaxTextBytes {
		return s.fail(RuleTextTooLong, MaxTextBytes)
	}
	if utf8.Valid(s.text) {
		return 0
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(s.text[i:])
		if r == utf8.RuneError && n == 1 {
			return s.fail(RuleInvalidUTF8, i)
		}
		i += n
	}
}

// end checks that nothing follows.
func (s *scanner) end(i int) int {
	if i < 0 {
		return i
	}
	if i = space(s.text, i); i < len(s.text) {
		return s.fail(RuleTrailingData, i)
	}
	return i
}
