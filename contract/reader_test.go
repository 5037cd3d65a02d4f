package contract

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

type sample struct {
	Node   string
	Seq    int64
	Flag   bool
	Hub    *Reference
	Table  *Reference
	Refs   []Reference
	Names  []string
	Opaque Raw
	Token  Secret
}

func (x *sample) shape() valueReader {
	return object(
		required("node", text(&x.Node)),
		required("seq", integer(&x.Seq)),
		optional("flag", boolean(&x.Flag)),
		optional("hub", pointer(&x.Hub, readReference)),
		optional("table", nullable(&x.Table, readReference)),
		optional("refs", list(&x.Refs, 4, readReference)),
		optional("names", list(&x.Names, 4, text)),
		optional("opaque", raw(&x.Opaque)),
		optional("token", secretText(&x.Token)),
	)
}

func (x *sample) Validate() []string { return nil }

func (x *sample) AppendJSON(dst []byte) []byte {
	w := beginObject(dst)
	w.text("node", x.Node)
	w.integer("seq", x.Seq)
	w.boolean("flag", x.Flag)
	if x.Hub != nil {
		w.value("hub", x.Hub)
	}
	if x.Table != nil {
		w.value("table", x.Table)
	} else {
		w.null("table")
	}
	if x.Refs != nil {
		writeList(&w, "refs", x.Refs)
	}
	if x.Names != nil {
		writeTexts(&w, "names", x.Names)
	}
	if x.Opaque != nil {
		w.value("opaque", x.Opaque)
	}
	if x.Token != nil {
		w.secret("token", x.Token)
	}
	return w.end()
}

// drawSample draws a sample with any text in it.
func drawSample(t *rapid.T) sample {
	reference := rapid.Custom(func(t *rapid.T) Reference {
		return Reference{rapid.String().Draw(t, "id"), rapid.Int64Range(-MaximumSafeInteger, MaximumSafeInteger).Draw(t, "generation"), rapid.String().Draw(t, "digest")}
	})
	x := sample{
		Node:  rapid.String().Draw(t, "node"),
		Seq:   rapid.Int64Range(-MaximumSafeInteger, MaximumSafeInteger).Draw(t, "seq"),
		Flag:  rapid.Bool().Draw(t, "flag"),
		Hub:   rapid.Ptr(reference, true).Draw(t, "hub"),
		Table: rapid.Ptr(reference, true).Draw(t, "table"),
	}
	if rapid.Bool().Draw(t, "lists") {
		x.Refs = rapid.SliceOfN(reference, 0, 4).Draw(t, "refs")
		x.Names = rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "names")
		x.Opaque = rapid.SampledFrom([]Raw{Raw("null"), Raw(`{"a":1,"a":[ -0.0e9 ]}`), Raw(`"\ud800"`), Raw("17")}).Draw(t, "opaque")
		x.Token = Secret(rapid.String().Draw(t, "token"))
	}
	return x
}

func TestReaderReadsWhatTheWriterWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSample(t)
		body := want.AppendJSON(nil)
		got, err := readAs[sample]("sample", body, 0)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// R03: a body with a name given twice, bad UTF-8, data behind it, too much depth or a
// lone surrogate is refused by its rule.
func TestR03_StrictBodies(t *testing.T) {
	const good = `{"node":"a","seq":1}`
	for name, tc := range map[string]struct{ body, want string }{
		"duplicate name":            {`{"node":"a","seq":1,"node":"a"}`, "node: is given twice"},
		"duplicate name by escape":  {`{"node":"a","seq":1,"n\u006fde":"a"}`, "node: is given twice"},
		"duplicate name inside":     {`{"node":"a","seq":1,"hub":{"id":"a","id":"b","generation":1,"digest":""}}`, "hub.id: is given twice"},
		"bad utf-8 in a value":      {"{\"node\":\"\xff\",\"seq\":1}", "body: is not valid utf-8"},
		"bad utf-8 in a name":       {"{\"node\":\"a\",\"seq\":1,\"\xc0\x80\":1}", "body: is not valid utf-8"},
		"surrogate as utf-8":        {"{\"node\":\"\xed\xa0\x80\",\"seq\":1}", "body: is not valid utf-8"},
		"bad utf-8 behind the body": {good + "\xff", "body: is not valid utf-8"},
		"byte order mark":           {"\ufeff" + good, "body: is not well-formed json"},
		"trailing value":            {good + good, "body: has data after its value"},
		"trailing bracket":          {good + "}", "body: has data after its value"},
		"trailing nul":              {good + "\x00", "body: has data after its value"},
		"too deep":                  {`{"node":` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}`, "body: nests too deep"},
		"too deep and unclosed":     {strings.Repeat(`{"a":`, 65), "body: nests too deep"},
		"lone surrogate":            {`{"node":"x\udfff","seq":1}`, "node: holds a lone surrogate"},
		"not an object":             {`["node","a"]`, "body: is not an object"},
		"nothing":                   {"", "body: is not well-formed json"},
		"control character":         {"{\"node\":\"\x01\",\"seq\":1}", "node: is not well-formed json"},
		"fraction":                  {`{"node":"a","seq":1.0}`, "seq: is not a plain safe integer"},
		"exponent":                  {`{"node":"a","seq":1e3}`, "seq: is not a plain safe integer"},
		"negative zero":             {`{"node":"a","seq":-0}`, "seq: is not a plain safe integer"},
		"2^53":                      {`{"node":"a","seq":9007199254740992}`, "seq: is not a plain safe integer"},
		"leading zero":              {`{"node":"a","seq":01}`, "body: is not well-formed json"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readAs[sample]("sample", []byte(tc.body), 0)
			if reasons := reasonsIn(t, err); len(reasons) != 1 || reasons[0] != tc.want {
				t.Errorf("got %q, want %q", reasons, tc.want)
			}
		})
	}
	if _, err := readAs[sample]("sample", []byte(" \t\r\n"+good+" \t\r\n"), 0); err != nil {
		t.Errorf("space around the body: %v", err)
	}
}

func TestListsStopTakingAtTheirLimit(t *testing.T) {
	var x sample
	reasons := readShape([]byte(`{"node":"a","seq":1,"names":["a","b","c","d","e",{"f":[]},7]}`), 0, x.shape())
	if diff := cmp.Diff([]string{"names: has more elements than are read"}, reasons); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, x.Names); diff != "" {
		t.Error(diff)
	}
}

// R03: 64 levels from the root of a body pass, and the 65th is refused.
func TestR03_DepthIsCountedFromTheRoot(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	read := func(body string) []string {
		var x sample
		return readShape([]byte(body), 0, x.shape())
	}
	if reasons := read(`{"node":"[[[","seq":1,"opaque":` + nest(63) + `}`); reasons != nil {
		t.Errorf("64 levels: %q", reasons)
	}
	if diff := cmp.Diff([]string{"body: nests too deep"}, read(`{"node":"a","seq":1,"opaque":`+nest(64)+`}`)); diff != "" {
		t.Error(diff)
	}
}

func TestOpenObjects(t *testing.T) {
	var node string
	var hub Reference
	shape := func(kind func(...member) valueReader) valueReader {
		return kind(required("node", text(&node)), optional("hub", readReference(&hub)))
	}
	for _, tc := range []struct {
		name, body                          string
		exact, open, tolerant, strict, only []string
	}{
		{name: "no others", body: `{"node":"a"}`},
		{name: "others", body: `{"x":{"y":[1e3,-0]},"node":"a","z":null}`,
			exact:  []string{`body: unknown member "x"`, `body: unknown member "z"`},
			strict: []string{`body: unknown member "x"`, `body: unknown member "z"`}},
		{name: "another twice", body: `{"x":1,"node":"a","\u0078":2}`,
			exact:    []string{`body: unknown member "x"`, `body: unknown member "x"`},
			strict:   []string{`body: unknown member "x"`, `body: unknown member "x"`},
			open:     []string{"body: gives an ignored member twice"},
			tolerant: []string{"body: gives an ignored member twice"}},
		{name: "duplicates inside another", body: `{"node":"a","x":{"y":[{"b":1,"b":2}]}}`,
			exact:    []string{`body: unknown member "x"`},
			strict:   []string{`body: unknown member "x"`},
			open:     []string{"body: an ignored member repeats a name or holds a lone surrogate"},
			tolerant: []string{"body: an ignored member repeats a name or holds a lone surrogate"}},
		{name: "lone surrogate inside another", body: `{"node":"a","x":["\udc00"]}`,
			exact:    []string{`body: unknown member "x"`},
			strict:   []string{`body: unknown member "x"`},
			open:     []string{"body: an ignored member repeats a name or holds a lone surrogate"},
			tolerant: []string{"body: an ignored member repeats a name or holds a lone surrogate"}},
		{name: "lone surrogate in a name", body: `{"node":"a","\ud800":1,"\ud800":2}`,
			exact:    []string{"body: has a member name with a lone surrogate", "body: has a member name with a lone surrogate"},
			strict:   []string{"body: has a member name with a lone surrogate", "body: has a member name with a lone surrogate"},
			open:     []string{"body: has a member name with a lone surrogate", "body: has a member name with a lone surrogate"},
			tolerant: []string{"body: has a member name with a lone surrogate", "body: has a member name with a lone surrogate"}},
		{name: "inner objects stay exact", body: `{"node":"a","hub":{"id":"","generation":1,"digest":"","x":1}}`,
			exact:  []string{`hub: unknown member "x"`},
			strict: []string{`hub: unknown member "x"`}, open: []string{`hub: unknown member "x"`},
			tolerant: []string{`hub: unknown member "x"`}, only: []string{`hub: unknown member "x"`}},
		{name: "declared members are required", body: `{"Node":"a"}`,
			exact: []string{`body: unknown member "Node"`, "node: is missing"}, strict: []string{`body: unknown member "Node"`, "node: is missing"},
			open: []string{"node: is missing"}, tolerant: []string{"node: is missing"}, only: []string{"node: is missing"}},
		{name: "declared member twice", body: `{"node":"a","node":"a"}`,
			exact: []string{"node: is given twice"}, strict: []string{"node: is given twice"}, open: []string{"node: is given twice"},
			tolerant: []string{"node: is given twice"}, only: []string{"node: is given twice"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for kind, got := range map[string][2][]string{
				"object":        {tc.exact, readShape([]byte(tc.body), 0, shape(object))},
				"openObject":    {tc.open, readShape([]byte(tc.body), 0, shape(openObject))},
				"answer":        {tc.tolerant, readShape([]byte(tc.body), 0, shape(answer))},
				"strict answer": {tc.strict, readShape([]byte(tc.body), strictAnswer, shape(answer))},
				"onlyMembers":   {tc.only, readShape([]byte(tc.body), 0, shape(onlyMembers))},
			} {
				if diff := cmp.Diff(got[0], got[1]); diff != "" {
					t.Errorf("%s: %s", kind, diff)
				}
			}
		})
	}
}

func TestKeptBytes(t *testing.T) {
	var root, first, id Raw
	var refs []Reference
	var node string
	shape := kept(&root, openObject(
		required("node", kept(&id, text(&node))),
		required("refs", list(&refs, 2, func(x *Reference) valueReader { return kept(&first, readReference(x)) })),
	))
	const reference = `{ "digest" : "d" , "generation":1,"id":"\u0069" }`
	body := []byte(` {"x" : 1, "node" :  "a\/b" ,"refs":[ ` + reference + ` ]} `)
	if reasons := readShape(body, 0, shape); reasons != nil {
		t.Fatal(reasons)
	}
	whole := strings.Trim(string(body), " ")
	clear(body)
	if string(first) != reference || string(id) != `"a\/b"` || string(root) != whole {
		t.Errorf("kept %q, %q, %q", string(first), string(id), string(root))
	}
	if node != "a/b" || refs[0] != (Reference{"i", 1, "d"}) {
		t.Errorf("read %q, %+v", node, refs)
	}
	if reasons := readShape([]byte(`{"node":"a","refs":[{"id":`), 0, shape); len(reasons) != 1 || reasons[0] != "refs[0].id: is not well-formed json" {
		t.Errorf("cut: %q", reasons)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"node":"a","seq":1}`))
	f.Add([]byte(` {"node":"\u0061\"b","seq":-7,"flag":true,"hub":{"id":"i","generation":2,"digest":"d"},"table":null,"refs":[],"names":["x"],"opaque":{"a":"\ud800","a":-0.5e9},"token":"s"} `))
	f.Add([]byte(`{"node":"a","seq":1,"x":{"y":[{"z":1,"z":2}]},"seq":2}`))
	f.Add([]byte(`{"node":"\ud800","\udc00":1e3,"refs":[{"id":1,"digest":null},[]]}`))
	for _, v := range loadVectors[[]refusedVector](f, "refused.json") {
		f.Add(append(append([]byte(`{"node":"a","seq":1,"opaque":`), v.InputBase64...), '}'))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		x, err := readAs[sample]("sample", body, 0)
		if !bytes.Equal(before, body) {
			t.Fatal("the reader wrote to the body")
		}
		if err != nil {
			checkReasons(t, err)
			return
		}
		if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) || !utf8.Valid(body) {
			t.Fatalf("took %q, which is not JSON", body)
		}
		written := x.AppendJSON(nil)
		again, err := readAs[sample]("sample", written, 0)
		if err != nil {
			t.Fatalf("wrote %q: %v", written, err)
		}
		if diff := cmp.Diff(x, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		// Without its opaque member the body is strict JSON.
		x.Opaque = nil
		if strict := x.AppendJSON(nil); !jsontext.Value(strict).IsValid() {
			t.Fatalf("wrote %q", strict)
		}
	})
}

// R04: the reader names every violation of a body with its path: members that are
// unknown, missing, given twice or of the wrong kind.
func TestR04_ReaderNamesEveryViolation(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		mode       mode
		want       []string
	}{
		{"unknown at root", `{"node":"a","seq":1,"x":1}`, 0, []string{`body: unknown member "x"`}},
		{"unknown secret", `{"node":"a","seq":1,"x":1}`, secretBearing, []string{`body: unknown member`}},
		{"unknown unquotable", `{"node":"a","seq":1,"x\n":1}`, 0, []string{`body: unknown member`}},
		{"unknown too long", `{"node":"a","seq":1,"` + strings.Repeat("x", 41) + `":1}`, 0, []string{`body: unknown member`}},
		{"missing", `{}`, 0, []string{`node: is missing`, `seq: is missing`}},
		{"missing inside", `{"node":"a","seq":1,"refs":[{"id":"a","generation":1,"digest":""},{"id":"","digest":""}]}`, 0, []string{`refs[1].generation: is missing`}},
		{"duplicate", `{"node":"a","seq":1,"seq":2}`, 0, []string{`seq: is given twice`}},
		{"duplicate escaped", `{"node":"a","seq":1,"s\u0065q":2}`, 0, []string{`seq: is given twice`}},
		{"case", `{"node":"a","Seq":1}`, 0, []string{`body: unknown member "Seq"`, `seq: is missing`}},
		{"kinds", `{"node":1,"seq":"1","flag":0,"hub":null,"refs":{},"names":[1]}`, 0, []string{
			`node: is not a string`, `seq: is not a number`, `flag: is not a boolean`, `hub: is not an object`,
			`refs: is not an array`, `names[0]: is not a string`}},
		{"trailing", `{"node":"a","seq":1} x`, 0, []string{`body: has data after its value`}},
		{"two values", `{"node":"a","seq":1}{}`, 0, []string{`body: has data after its value`}},
		{"cut", `{"node":"a","seq":1`, 0, []string{`body: is not well-formed json`}},
		{"cut inside", `{"node":"a","hub":{"id":`, 0, []string{`hub.id: is not well-formed json`}},
		{"empty", ``, 0, []string{`body: is not well-formed json`}},
		{"surrogate", `{"node":"\ud800","seq":1}`, 0, []string{`node: holds a lone surrogate`}},
		{"surrogate name", `{"node":"a","seq":1,"\udc00":1}`, 0, []string{`body: has a member name with a lone surrogate`}},
		{"opaque lenient", `{"node":"a","seq":1,"opaque":{"a":"\ud800","a":1e3}}`, 0, nil},
		{"opaque malformed", `{"node":"a","seq":1,"opaque":{"a":01}}`, 0, []string{`opaque: is not well-formed json`}},
		{"opaque utf8", "{\"node\":\"a\",\"seq\":1,\"opaque\":\"\xff\"}", 0, []string{`body: is not valid utf-8`}},
		{"limit", `{"node":"a","seq":1,"names":["a","b","c","d","e"]}`, 0, []string{`names: has more elements than are read`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var x sample
			if diff := cmp.Diff(tc.want, readShape([]byte(tc.body), tc.mode, x.shape())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReaderTakesWhatIsThere(t *testing.T) {
	var x sample
	body := []byte(` { "node" : "\u0061\"b" , "seq":-7,"flag":true,"hub":{"id":"i","generation":2,"digest":"d"},` +
		`"table":null,"refs":[],"names":["x","y"],"opaque": {"a" : 1} ,"token":"s"} `)
	if reasons := readShape(body, 0, x.shape()); reasons != nil {
		t.Fatal(reasons)
	}
	clear(body) // what was read must not alias the frame
	want := sample{Node: `a"b`, Seq: -7, Flag: true, Hub: &Reference{"i", 2, "d"}, Refs: []Reference{},
		Names: []string{"x", "y"}, Opaque: Raw(`{"a" : 1}`), Token: Secret("s")}
	if diff := cmp.Diff(want, x); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkReader reads a list of as many small objects as the largest VPN
// network has workload prefixes.
func BenchmarkReader(b *testing.B) {
	var refs []Reference
	for range 256 * 64 {
		refs = append(refs, Reference{"10.0.0.0/24", 1, "workload-12345"})
	}
	w := beginObject(nil)
	writeList(&w, "refs", refs)
	body := w.end()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var got []Reference
		if reasons := readShape(body, 0, object(required("refs", list(&got, len(refs), readReference)))); reasons != nil {
			b.Fatal(reasons)
		}
	}
}
