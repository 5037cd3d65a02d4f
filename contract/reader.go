package contract

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaximumDepth bounds how deep objects and arrays nest in a body, the body's
// own object counted as one (contract O27).
const MaximumDepth = 64

// mode changes how one body is read.
type mode uint8

const (
	// secretBearing keeps the names of unknown members out of reasons: in such
	// a body even a name may be a misplaced secret.
	secretBearing mode = 1 << iota
	// strictAnswer refuses unknown members also in answers that are otherwise
	// read tolerantly (contract O35).
	strictAnswer
)

// valueReader reads exactly one JSON value and records what is wrong with its
// shape.
type valueReader func(r *reader)

// reader walks one body once. jsontext runs leniently (duplicate names and
// lone surrogates pass) so that opaque members keep their bytes; every name
// and string that is read here is judged strictly by the reader itself.
type reader struct {
	findings
	body   []byte
	dec    *jsontext.Decoder
	mode   mode
	broken bool
}

// message is what readAs needs of a type: its shape and its rules.
type message[T any] interface {
	*T
	shape() valueReader
	Validate() []string
}

// readAs decodes body into an owned T and judges it: the shape first, and the
// rules only of a value whose shape is right.
func readAs[T any, P message[T]](what string, body []byte, m mode) (T, error) {
	var x T
	reasons := readShape(body, m, P(&x).shape())
	if len(reasons) == 0 {
		reasons = P(&x).Validate()
	}
	if len(reasons) > 0 {
		if secret, ok := any(P(&x)).(interface{ Zero() }); ok {
			secret.Zero() // nobody else holds what was read so far
		}
		var zero T
		return zero, &InvalidError{What: what, Reasons: reasons}
	}
	return x, nil
}

// readShape reads the one JSON value that body must be.
func readShape(body []byte, m mode, read valueReader) []string {
	r := &reader{body: body, mode: m}
	switch {
	case !utf8.Valid(body):
		r.add("is not valid utf-8")
		return r.list()
	case depthOf(body) > MaximumDepth:
		r.add("nests too deep")
		return r.list()
	}
	r.dec = jsontext.NewDecoder(bytes.NewBuffer(body),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	read(r)
	if !r.broken && len(bytes.TrimLeft(r.dec.UnreadBuffer(), " \t\r\n")) > 0 {
		r.add("has data after its value")
	}
	return r.list()
}

// depthOf returns how deep brackets nest outside strings. The answer is exact
// for well-formed JSON; anything else is refused by the tokenizer anyway.
func depthOf(body []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case '"':
			i += stringLength(body[i:]) - 1
		}
	}
	return deepest
}

// stringLength returns the length of the JSON string that s begins with, quotes
// included, or of all of s when the string does not end.
func stringLength(s []byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// fail ends the walk: the tokenizer cannot go on.
func (r *reader) fail() {
	if !r.broken {
		r.broken = true
		r.add("is not well-formed json")
	}
}

// next returns the bytes of the next value, valid until the next read.
func (r *reader) next() (jsontext.Value, bool) {
	if r.broken {
		return nil, false
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		r.fail()
		return nil, false
	}
	return v, true
}

// kind reports whether the next value is of the kind; if not, the value is
// skipped and the rule recorded.
func (r *reader) kind(k jsontext.Kind, rule string) bool {
	if r.broken {
		return false
	}
	switch got := r.dec.PeekKind(); got {
	case k:
		return true
	case jsontext.KindInvalid, '}', ']':
		r.fail()
		return false
	default:
		if err := r.dec.SkipValue(); err != nil {
			r.fail()
			return false
		}
		r.add(rule)
		return false
	}
}

// unquote returns the content of a JSON string, which may alias it. It reports
// false for one that holds a lone surrogate, in whose place U+FFFD is returned.
func unquote(quoted []byte) ([]byte, bool) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], true
	}
	// With room for all of it, so that growing leaves no part of a secret behind.
	text, err := jsontext.AppendUnquote(make([]byte, 0, len(quoted)), quoted)
	return text, err == nil
}
