package envelope

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// R03: every form of JSON value is taken, and every text that only resembles one is
// refused, at strict places and at loose ones.
func TestR03_Grammar(t *testing.T) {
	good := strings.Fields(`0 -0 1 -1 10 1234567890123456789012345678901234567890 0.0 -0.5 1.25 1e1 1E1 1e+1 1e-01
		0e0 0E-0 1.5e400 -1e400 true false null {} [] "" "\"\\\/\b\f\n\r\t" "\u0000\uFFFF\uabCD" "\u007f" "é" "😀"
		[1,2] [[],{}] {"a":{"b":[null]}} {"":""}`)
	good = append(good, "[ 1 , 2 ]", "{ \"a\" :\t1\r\n}", " \t\r\n0 ", "\"\x7f\"", `"`+strings.Repeat("x", 100)+`"`)
	bad := strings.Fields(`- + +1 01 -01 00 1. .5 1.e1 1e 1e+ 1E- 0x10 1_0 Infinity -Infinity NaN True nulL nul tru fals truex
		undefined 'a' "\a" "\'" "\u" "\u1" "\u123" "\u12g4" "\U0041" "\x41" "a"b" [ ] { } [1 1] [1,] [,1] [,] [1,,2] {,} {"a"} {"a":} {"a":1,}
		{a:1} {1:1} {"a":1:2} {"a",1} {"a":1]  [1} [{]} {[}] /**/1 1/**/ # --1 1-1 1+1`)
	bad = append(bad, "", " ", `"a`, `"\`, `"\"`, "\"\x00\"", "\"\x1f\"", "\"\n\"", "\v0", "\f0", "\u00a00", "\ufeff0", "1 2", `"a" "b"`, "{\"a\" 1}", "\x00")
	for _, place := range []string{`{"a":%s}`, `{"request":{"x":[%s]}}`, `{"request":{"session":{"x":%s}}}`, `{"request":%s}`, `{"request":{"x":{"y":%s,"z":0}}}`} {
		for _, value := range good {
			text := fmt.Sprintf(place, value)
			if got := scanRule(t, text); got != 0 {
				t.Errorf("%q: got %v", text, got)
			}
			compareWithReference(t, []byte(text))
		}
		for _, value := range bad {
			text := fmt.Sprintf(place, value)
			if strings.Contains(place, "[%s]") && strings.TrimSpace(value) == "" {
				continue // an empty array is well-formed
			}
			if got := scanRule(t, text); got != RuleSyntax && got != RuleTrailingData {
				t.Errorf("%q: got %v", text, got)
			}
			compareWithReference(t, []byte(text))
		}
	}
}

// R03: a frame that is cut at any byte is no frame.
func TestR03_EveryPrefix(t *testing.T) {
	text := capture(t, "run3-v8-stream-request")
	for n := range text {
		compareWithReference(t, text[:n])
		var f Frame
		var refused *ScanError
		if err := Scan(text[:n], &f); !errors.As(err, &refused) || refused.Rule != RuleSyntax {
			t.Fatalf("%d bytes: got %v", n, err)
		}
	}
}

// TestStringEnd puts each byte at each place of a word, against one byte at a
// time.
func TestStringEnd(t *testing.T) {
	slow := func(text []byte) int {
		for i := 1; i < len(text); i++ {
			switch c := text[i]; {
			case c == '"':
				return i + 1
			case c < 0x20 || c == '\\':
				return ^i
			}
		}
		return ^len(text)
	}
	for length := range 40 {
		for position := range length {
			for c := range 256 {
				text := []byte(`"` + strings.Repeat("é", length)[:length] + `"`)
				text[1+position] = byte(c)
				if c == '\\' && position < length-1 {
					text[2+position] = 'x' // no escape, whatever follows
				}
				if c == '\\' && position == length-1 {
					continue // escapes the closing quote
				}
				if end, escaped := stringEnd(text, 0); end != slow(text) || escaped != (c == '\\') {
					t.Fatalf("%q: got %d, %v, want %d", text, end, escaped, slow(text))
				}
			}
		}
	}
}

// nested returns n levels of nesting.
func nested(opener string, n int) string {
	closer := map[string]string{`[`: `]`, `{"x":`: `}`, `[{"x":`: `}]`}[opener]
	levels := len(closer)
	return strings.Repeat(opener, n/levels) + "0" + strings.Repeat(closer, n/levels)
}

// B185: depth 64 passes, 65 and 10,000 are refused at the opening of level 65, whatever
// the place and the brackets.
func TestB185_NestingIsBounded(t *testing.T) {
	for _, place := range []struct {
		text  string
		depth int // of the level the value stands in
	}{
		{`{"x":%s}`, 1},
		{`{"request":%s}`, 1},
		{`{"response":{"x":%s}}`, 2},
		{`{"correlation":{"x":%s}}`, 2},
		{`{"error":%s}`, 1},
		{`{"request":{"session":%s}}`, 2},
		{`{"request":{"session":{"x":%s}}}`, 3},
	} {
		for _, opener := range []string{`[`, `{"x":`} {
			most := MaxDepth - place.depth
			if got := scanRule(t, fmt.Sprintf(place.text, nested(opener, most))); got != 0 {
				t.Errorf("%s with %d of %s: got %v", place.text, most, opener, got)
			}
			for _, n := range []int{most + 1, 10_000} {
				text := []byte(fmt.Sprintf(place.text, nested(opener, n)))
				want := ScanError{Rule: RuleDepth, Offset: strings.Index(place.text, "%s") + most*len(opener)}
				var f Frame
				err := Scan(text, &f)
				if refused, _ := err.(*ScanError); refused == nil || *refused != want {
					t.Errorf("%s with %d of %s: got %v, want %v", place.text, n, opener, err, &want)
				}
				if allocs := testing.AllocsPerRun(10, func() { Scan(text, &f) }); allocs > 1 {
					t.Errorf("%s with %d of %s: %v allocations", place.text, n, opener, allocs)
				}
			}
		}
		mixed := fmt.Sprintf(place.text, nested(`[{"x":`, 10_000))
		if got := scanRule(t, mixed); got != RuleDepth {
			t.Errorf("%s mixed: got %v", place.text, got)
		}
	}
}
