package contract

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestWriterMembers(t *testing.T) {
	w := beginObject([]byte("kept:"))
	w.text("text", "<\u2028>\"\\\x01\n\x7fé")
	w.secret("secret", Secret("s\t"))
	w.integer("integer", -9007199254740991)
	w.boolean("boolean", true)
	w.null("null")
	w.value("raw", Raw(`{ "a" : 1 }`))
	w.value("absentRaw", Raw(nil))
	w.value("empty", Empty{})
	writeList(&w, "list", []Empty{{}, {}})
	writeList[Empty](&w, "noList", nil)
	writeTexts(&w, "texts", []string{"a", ""})
	writeTexts(&w, "noTexts", nil)
	const want = `kept:{"text":"<` + "\u2028" + `>\"\\\u0001\n` + "\x7fé" + `","secret":"s\t","integer":-9007199254740991,"boolean":true,"null":null,` +
		`"raw":{ "a" : 1 },"absentRaw":null,"empty":{},"list":[{},{}],"noList":[],"texts":["a",""],"noTexts":[]}`
	if got := string(w.end()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWrittenStringsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "string")
		written := appendString(nil, want)
		if canonical, ok := slowCanonical(written); !ok || canonical != string(written) {
			t.Fatalf("%q is not as JSON.stringify writes it: %q", written, canonical)
		}
		var got string
		if err := json.Unmarshal(written, &got); err != nil || got != want {
			t.Fatalf("%q: read back %q, %v", written, got, err)
		}
	})
	// Whatever bytes a string holds, what is written is JSON.
	rapid.Check(t, func(t *rapid.T) {
		written := appendString(nil, Secret(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		if !json.Valid(written) || bytes.Contains(written, []byte("\xff")) {
			t.Fatalf("%q is not JSON", written)
		}
	})
}

func TestRawKinds(t *testing.T) {
	read := func(body string, kind func(*Raw) valueReader) (string, []string) {
		var got Raw
		reasons := readShape([]byte(body), 0, kind(&got))
		return string(got), reasons
	}
	for _, tc := range []struct {
		kind       func(*Raw) valueReader
		body, want string
		refused    string
	}{
		{raw, ` [1, 2] `, `[1, 2]`, ""},
		{raw, `null`, `null`, ""},
		{rawObject, ` {"a":1,"a":2}`, `{"a":1,"a":2}`, ""},
		{rawObject, `[]`, ``, "body: is not an object"},
		{rawObject, `null`, ``, "body: is not an object"},
		{rawArray, `[{"a":"\udc00"}]`, `[{"a":"\udc00"}]`, ""},
		{rawArray, `{}`, ``, "body: is not an array"},
		{rawArray, `"[]"`, ``, "body: is not an array"},
	} {
		got, reasons := read(tc.body, tc.kind)
		if got != tc.want || (len(reasons) == 0) != (tc.refused == "") || len(reasons) == 1 && reasons[0] != tc.refused {
			t.Errorf("%s: %q, %q", tc.body, got, reasons)
		}
	}
	if !Raw("{}").IsObject() || Raw("[]").IsObject() || Raw(nil).IsObject() || !Raw("null").IsNull() || Raw("{}").IsNull() || Raw(nil).IsNull() {
		t.Error("a raw value is taken for another kind")
	}
}
