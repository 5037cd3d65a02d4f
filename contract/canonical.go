package contract

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns the strict canonical JSON of one value (contract §3): no
// whitespace, object names in UTF-16 code-unit order, strings as JSON.stringify
// writes them, safe integers in plain digits. It refuses, with an
// *InvalidError, fractions, exponents, negative zero and integers beyond
// ±MaximumSafeInteger, duplicate names, lone surrogates, invalid UTF-8,
// malformed JSON, data after the value, and nesting beyond MaximumDepth. The
// input is not written to.
func Canonical(raw []byte) ([]byte, error) {
	value, reason := normal(raw)
	if reason == "" && !hasOnlySafeIntegers(value) {
		reason = "holds a number that is not a plain safe integer"
	}
	if reason != "" {
		return nil, &InvalidError{What: "canonical json", Reasons: []string{"body: " + reason}}
	}
	return value, nil
}

// CanonicalLength returns how many bytes the canonical form of a value has,
// the measure in which the contract bounds values.
func CanonicalLength(raw []byte) (int, error) {
	canonical, err := Canonical(raw)
	return len(canonical), err
}

// EqualCanonical reports whether two values have the same canonical content
// (contract §2.3, networkEqual). A value without a canonical form equals
// nothing, not even itself.
func EqualCanonical(a, b []byte) bool {
	if outlineOf(a) != outlineOf(b) {
		return false
	}
	left, err := Canonical(a)
	if err != nil {
		return false
	}
	right, err := Canonical(b)
	return err == nil && bytes.Equal(left, right)
}

// outline counts what every way of writing a value has in common. Comparing two
// outlines costs one pass without memory, where a canonical form costs some
// fifty times the value, which a peer could make us pay for nothing.
type outline struct{ objects, arrays, commas, colons int }

// outlineOf counts the structural characters of a text outside its strings.
func outlineOf(raw []byte) (o outline) {
	inString := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			o.objects++
		case c == '[':
			o.arrays++
		case c == ',':
			o.commas++
		case c == ':':
			o.colons++
		}
	}
	return o
}

// EqualJSON reports whether two texts are the same bytes, or else the same JSON
// value: member order free, strings by their content, numbers by their token
// (design §4, row §7.2). Texts that repeat a name, hold a lone surrogate or
// nest beyond MaximumDepth are equal only as bytes.
func EqualJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if outlineOf(a) != outlineOf(b) {
		return false
	}
	left, reason := normal(a)
	if reason != "" {
		return false
	}
	right, reason := normal(b)
	return reason == "" && bytes.Equal(left, right)
}

// keepNumbers leaves number tokens as they are: the canonical form admits only
// tokens that are canonical already, and equality compares tokens.
var keepNumbers = []jsontext.Options{
	jsontext.CanonicalizeRawInts(false),
	jsontext.CanonicalizeRawFloats(false),
}

// normal returns a value with ordered names, shortest strings and untouched
// numbers, or the reason why it has no such form.
func normal(raw []byte) (value jsontext.Value, reason string) {
	if !utf8.Valid(raw) {
		return nil, "is not valid utf-8"
	}
	if depthOf(raw) > MaximumDepth {
		return nil, "nests too deep"
	}
	value = bytes.Clone(raw)
	if err := value.Canonicalize(keepNumbers...); err != nil {
		// The tokenizer's error quotes names, so it is not passed on.
		return nil, "is malformed, repeats a name or holds a lone surrogate"
	}
	return value, ""
}

// hasOnlySafeIntegers judges every number token of well-formed JSON.
func hasOnlySafeIntegers(value []byte) bool {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			i += stringLength(value[i:]) - 1
		case c == '-' || isDigit(c):
			n := numberLength(value[i:])
			if _, ok := parseSafeInteger(value[i : i+n]); !ok {
				return false
			}
			i += n - 1
		}
	}
	return true
}

// numberLength returns the length of the number token that s begins with.
func numberLength(s []byte) int {
	for i, c := range s {
		if !isDigit(c) && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			return i
		}
	}
	return len(s)
}
