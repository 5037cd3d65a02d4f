package contract

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// oracle is a slow, plain reader and writer of strict canonical JSON. It shares
// nothing with Canonical: it works on UTF-16 code units throughout.
type oracle struct {
	units []uint16
	at    int
}

type oracleRefusal struct{}

func slowCanonical(raw []byte) (text string, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, refused := r.(oracleRefusal); !refused {
				panic(r)
			}
			text, ok = "", false
		}
	}()
	if !utf8.Valid(raw) {
		return "", false
	}
	o := &oracle{units: utf16.Encode([]rune(string(raw)))}
	out := o.value(0)
	o.space()
	if o.at != len(o.units) {
		return "", false
	}
	return out, true
}

func (o *oracle) refuse() { panic(oracleRefusal{}) }

func (o *oracle) peek() uint16 {
	if o.at >= len(o.units) {
		return 0
	}
	return o.units[o.at]
}

func (o *oracle) next() uint16 {
	if o.at >= len(o.units) {
		o.refuse()
	}
	o.at++
	return o.units[o.at-1]
}

func (o *oracle) space() {
	for o.at < len(o.units) && slices.Contains([]uint16{' ', '\t', '\n', '\r'}, o.units[o.at]) {
		o.at++
	}
}

func (o *oracle) expect(word string) {
	for _, r := range word {
		if o.next() != uint16(r) {
			o.refuse()
		}
	}
}

func (o *oracle) value(depth int) string {
	o.space()
	switch c := o.peek(); c {
	case '{', '[':
		if depth == MaximumDepth {
			o.refuse()
		}
		o.at++
		if c == '{' {
			return o.object(depth + 1)
		}
		return o.array(depth + 1)
	case '"':
		return slowQuote(o.text())
	case 't':
		o.expect("true")
		return "true"
	case 'f':
		o.expect("false")
		return "false"
	case 'n':
		o.expect("null")
		return "null"
	}
	return o.number()
}

func (o *oracle) number() string {
	start := o.at
	for o.at < len(o.units) && strings.ContainsRune("0123456789+-.eE", rune(o.units[o.at])) {
		o.at++
	}
	token := string(utf16.Decode(o.units[start:o.at]))
	var n int64
	if _, err := fmt.Sscanf(token, "%d", &n); err != nil || fmt.Sprint(n) != token || n > 1<<53-1 || n < -(1<<53-1) {
		o.refuse()
	}
	return token
}

func (o *oracle) text() []uint16 {
	o.expect(`"`)
	var text []uint16
	for {
		c := o.next()
		switch {
		case c == '"':
			if slices.Contains(utf16.Decode(text), utf8.RuneError) && slices.Contains(text, 0xFFFD) == false {
				o.refuse() // a lone surrogate decodes to U+FFFD
			}
			for i, r := range utf16.Encode(utf16.Decode(text)) {
				if r != text[i] {
					o.refuse()
				}
			}
			return text
		case c < ' ':
			o.refuse()
		case c == '\\':
			e := o.next()
			if i := strings.IndexRune(`"\/bfnrt`, rune(e)); i >= 0 {
				text = append(text, uint16("\"\\/\b\f\n\r\t"[i]))
				continue
			}
			if e != 'u' {
				o.refuse()
			}
			var unit uint16
			for range 4 {
				digit := strings.IndexRune("0123456789abcdef", rune(o.next()|0x20))
				if digit < 0 || o.units[o.at-1] < '0' {
					o.refuse()
				}
				unit = unit<<4 | uint16(digit)
			}
			text = append(text, unit)
		default:
			text = append(text, c)
		}
	}
}

func slowQuote(text []uint16) string {
	out := `"`
	for _, r := range utf16.Decode(text) {
		if i := strings.IndexRune("\"\\\b\f\n\r\t", r); i >= 0 {
			out += `\` + string(`"\bfnrt`[i])
		} else if r < ' ' {
			out += fmt.Sprintf(`\u%04x`, r)
		} else {
			out += string(r)
		}
	}
	return out + `"`
}

func (o *oracle) sequence(end uint16, one func()) {
	o.space()
	if o.peek() == end {
		o.at++
		return
	}
	for {
		one()
		o.space()
		switch o.next() {
		case end:
			return
		case ',':
		default:
			o.refuse()
		}
	}
}

func (o *oracle) array(depth int) string {
	var items []string
	o.sequence(']', func() { items = append(items, o.value(depth)) })
	return "[" + strings.Join(items, ",") + "]"
}

func (o *oracle) object(depth int) string {
	type pair struct {
		name  []uint16
		value string
	}
	var pairs []pair
	o.sequence('}', func() {
		o.space()
		name := o.text()
		for _, p := range pairs {
			if slices.Equal(p.name, name) {
				o.refuse()
			}
		}
		o.space()
		o.expect(":")
		pairs = append(pairs, pair{name, o.value(depth)})
	})
	slices.SortFunc(pairs, func(a, b pair) int { return slices.Compare(a.name, b.name) })
	items := make([]string, len(pairs))
	for i, p := range pairs {
		items[i] = slowQuote(p.name) + ":" + p.value
	}
	return "{" + strings.Join(items, ",") + "}"
}

// anyJSON draws JSON text with odd spacing, escapes and names, and now and then
// with something that must be refused.
func anyJSON() *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t"})
	piece := rapid.SampledFrom([]string{"a", "b", "A", "0", `\"`, `\\`, `\/`, `\n`, `\u0001`, `\u000A`, `\u0061`, "\u2028", `\u2028`,
		"\ue000", `\uE000`, "\uffff", "\U00010000", `\ud83d\ude00`, "\U0001f600", "é", "\x7f", `\u007f`, "<", `\ufffd`,
		`\ud800`, `\udc00`, "\t", `\x`})
	weights := rapid.IntRange(0, 199)
	quoted := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteByte('"')
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			p := piece.Draw(t, "piece")
			// Pieces that are refused are rare, so that most texts are accepted.
			if (strings.HasPrefix(p, `\ud800`) || p == `\udc00` || p == "\t" || p == `\x`) && weights.Draw(t, "keep") > 5 {
				continue
			}
			b.WriteString(p)
		}
		b.WriteByte('"')
		return b.String()
	})
	number := rapid.OneOf(
		rapid.Map(rapid.Int64Range(-MaximumSafeInteger, MaximumSafeInteger), func(n int64) string { return fmt.Sprint(n) }),
		rapid.SampledFrom([]string{"0", "1", "-1", "9007199254740991", "-9007199254740991"}))
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if weights.Draw(t, "bad") == 0 {
				return rapid.SampledFrom([]string{"-0", "1.0", "1e3", "01", "9007199254740992", "-9007199254740992", "nul", "", "[1,]", `{"a":1,"\u0061":2}`, "1 2"}).Draw(t, "bad value")
			}
			kinds := 6
			if depth > 3 {
				kinds = 4
			}
			switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
			case 0:
				return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "literal")
			case 1:
				return number.Draw(t, "number")
			case 2, 3:
				return quoted.Draw(t, "string")
			case 4:
				var items []string
				for range rapid.IntRange(0, 4).Draw(t, "elements") {
					items = append(items, space.Draw(t, "space")+value(depth+1).Draw(t, "element")+space.Draw(t, "space"))
				}
				return "[" + strings.Join(items, ",") + "]"
			default:
				var items []string
				for range rapid.IntRange(0, 5).Draw(t, "members") {
					items = append(items, space.Draw(t, "space")+quoted.Draw(t, "name")+space.Draw(t, "space")+":"+value(depth+1).Draw(t, "member"))
				}
				return "{" + strings.Join(items, ",") + space.Draw(t, "space") + "}"
			}
		})
	}
	return rapid.Custom(func(t *rapid.T) string {
		return space.Draw(t, "space") + value(0).Draw(t, "value") + space.Draw(t, "space")
	})
}

// R05: any text has the canonical form that a slow second implementation gives it, or
// is refused where that one refuses it.
func TestR05_CanonicalAgreesWithSlowOracle(t *testing.T) {
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(anyJSON().Draw(t, "json"))
		if want, ok := slowCanonical(raw); ok {
			accepted++
			checkCanonical(t, raw, want)
		} else {
			refused++
			checkRefused(t, raw)
		}
	})
	if accepted == 0 || refused == 0 {
		t.Errorf("%d accepted and %d refused texts prove little", accepted, refused)
	}
}

// testingT is what *testing.T and *rapid.T have in common.
type testingT interface {
	Errorf(format string, args ...any)
}

func checkCanonical(t testingT, raw []byte, want string) {
	before := bytes.Clone(raw)
	got, err := Canonical(raw)
	if err != nil || string(got) != want {
		t.Errorf("Canonical(%q) = %q, %v; want %q", raw, got, err, want)
		return
	}
	if !bytes.Equal(raw, before) {
		t.Errorf("Canonical wrote to its input %q", before)
	}
	if again, err := Canonical(got); err != nil || !bytes.Equal(again, got) {
		t.Errorf("Canonical(%q) = %q, %v: not a fixed point", got, again, err)
	}
}

func checkRefused(t testingT, raw []byte) {
	if got, err := Canonical(raw); err == nil {
		t.Errorf("Canonical(%q) = %q; want a refusal", raw, got)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, v := range loadVectors[[]canonicalVector](f, "canonical.json") {
		f.Add([]byte(v.Input))
	}
	for _, v := range loadVectors[[]refusedVector](f, "refused.json") {
		f.Add(v.InputBase64)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 1<<12 {
			return // the oracle is slow
		}
		if want, ok := slowCanonical(raw); ok {
			checkCanonical(t, raw, want)
		} else {
			checkRefused(t, raw)
		}
		if !EqualJSON(raw, raw) {
			t.Error("a text does not equal itself")
		}
	})
}

func TestEqualJSON(t *testing.T) {
	for _, tc := range []struct {
		name, a, b            string
		wantJSON, wantContent bool
	}{
		{"same bytes", `{"a":1}`, `{"a":1}`, true, true},
		{"order and space", `{"a":1,"b":[2]}`, ` {"b":[ 2 ], "a":1}`, true, true},
		{"escapes", `{"\u0061":"\/"}`, `{"a":"/"}`, true, true},
		{"array order", `[1,2]`, `[2,1]`, false, false},
		{"missing member", `{"a":1}`, `{"a":1,"b":2}`, false, false},
		{"number token", `1.0`, `1`, false, false},
		{"same fraction", `{"a":1.50}`, `{ "a":1.50}`, true, false},
		{"fraction by token", `1.50`, `1.5`, false, false},
		{"large integer", `[12345678901234567890]`, `[12345678901234567891]`, false, false},
		{"negative zero", `[-0]`, `[0]`, false, false},
		{"null and absent", `{"a":null}`, `{}`, false, false},
		{"duplicate names as bytes", `{"a":1,"a":2}`, `{"a":1,"a":2}`, true, false},
		{"duplicate names reordered", `{"a":1,"a":2}`, `{"a":1, "a":2}`, false, false},
		{"lone surrogate as bytes", `"\ud800"`, `"\ud800"`, true, false},
		{"two lone surrogates", `"\ud800"`, `"\ud801"`, false, false},
		{"lone surrogate spaced", `["\ud800"]`, `[ "\ud800"]`, false, false},
		{"malformed", `{`, `{ `, false, false},
		{"invalid utf-8", "\"\xff\"", "\"\xfe\"", false, false},
		{"string and number", `"1"`, `1`, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, pair := range [][2]string{{tc.a, tc.b}, {tc.b, tc.a}} {
				if got := EqualJSON([]byte(pair[0]), []byte(pair[1])); got != tc.wantJSON {
					t.Errorf("EqualJSON(%q, %q) = %t", pair[0], pair[1], got)
				}
				if got := EqualCanonical([]byte(pair[0]), []byte(pair[1])); got != tc.wantContent {
					t.Errorf("EqualCanonical(%q, %q) = %t", pair[0], pair[1], got)
				}
			}
		})
	}
}

// BenchmarkCanonical canonicalises a value of the size and shape of the largest
// VPN network.
func BenchmarkCanonical(b *testing.B) {
	var raw []byte
	raw = append(raw, `{"nodes":[`...)
	for node := range 256 {
		raw = fmt.Appendf(raw, `{"nodeId":"node-%03d","publicKey":"%044d","controlAddress":"10.0.%d.2","expiresAt":1767225600000,"workloadPrefixes":[`, node, node, node)
		for prefix := range 64 {
			raw = fmt.Appendf(raw, `{"policyDomain":"w-%05d","cidr":"10.%d.%d.0/24"},`, node*64+prefix, node, prefix)
		}
		raw[len(raw)-1] = ']'
		raw = append(raw, "},"...)
	}
	raw[len(raw)-1] = ']'
	raw = append(raw, '}')
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonical(raw); err != nil {
			b.Fatal(err)
		}
	}
}
