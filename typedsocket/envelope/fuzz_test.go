package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"unicode/utf8"
)

// FuzzScanAgainstJSONText holds the scanner to the slow reading of its rules.
func FuzzScanAgainstJSONText(f *testing.F) {
	for _, c := range captures {
		f.Add(capture(f, c.name))
	}
	for _, lv := range levels {
		for _, members := range []string{
			`"a":1,"\u0061":2`, `"__proto__":{"a":[]}`, `"a":"\ud800"`, `"\udc00":"\ud83d\ude00"`, names(17) + `,"n3":0`,
			`"nodeId":"a","x":{"node\u0049d":"\u0061","_isVirtualStream":true},"session":{"nodeId":"a"}`,
		} {
			f.Add(fmt.Appendf(nil, lv.text, members))
		}
	}
	f.Add([]byte(`{"method":"m","request":` + nested(`[{"x":`, 80) + `,"correlation":{"id":"i","phase":"request"}}`))
	f.Add([]byte(`{"response":{"session":{"nodeId":"a"},"nodeId":"b"},"requestInstanceId":"r","correlation":{"id":1e400,"phase":"response"},"error":{"text":"t"},"retry":null} `))
	f.Add([]byte("{\"a\":\"\xff\"}"))
	f.Add([]byte(`[-0.5e+1,true,false,null]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		compareWithReference(t, text)
		if f := new(Frame); Salvage(text, f) && (!json.Valid(text) || f.Body.Object || f.Body.NodeIDs.Count > 0) {
			t.Fatalf("salvaged %+v", f)
		}
		if !bytes.Equal(before, text) {
			t.Fatal("the scan wrote into the frame")
		}
	})
}

// parseFailure is the slow reading of error and retry. ok is false for
// whatever is no object a scan would have let through.
func parseFailure(raw []byte) (root *node, null, ok bool) {
	if len(raw) == 0 {
		return nil, true, false
	}
	if !utf8.Valid(raw) {
		return nil, false, false
	}
	root, trailing, err := parse(raw)
	if err != nil || trailing {
		return nil, false, false
	}
	broken := judge{}
	broken.level(root, true)
	broken.depth(root, 2)
	return root, root.kind == 'n', root.kind == '{' && len(broken) == 0
}

func FuzzReadError(f *testing.F) {
	for _, raw := range []string{
		``, `null`, ` null `, `{"text":"a","data":{"code":"E1"}}`, `{"data":[],"t\u0065xt":"\u0061\ud83d\ude00"}`,
		`{"text":"\ud800"}`, `{"text":1}`, `{"text":"a","text":"b"}`, `"x"`, `{"text":"a","data":` + nested("[", 70) + `}`, "{\"text\":\"\xff\"}",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, data, state := ReadError(raw)
		root, null, ok := parseFailure(raw)
		want, wantText := ErrorUnnamed, ""
		var wantData []byte
		if null {
			want = ErrorNone
		} else if s, isText := root.get("text").text(); ok && isText {
			want, wantText, wantData = ErrorNamed, s, root.get("data").bytes()
		}
		if state != want || text != wantText || !bytes.Equal(data, wantData) || (data == nil) != (wantData == nil) {
			t.Fatalf("%q: got %v, %q, %q, want %v, %q, %q", raw, state, text, data, want, wantText, wantData)
		}
	})
}

func FuzzReadRetry(f *testing.F) {
	for _, raw := range []string{
		``, `null`, `{"waitForMs":2000,"reason":"a"}`, `{"waitForMs":1e3}`, `{"waitForMs":1e400}`, `{"waitForMs":-0}`,
		`{"waitForMs":2147483647,"reason":"\u0061"}`, `{"waitForMs":2147483648}`, `{"waitForMs":"1"}`, `{"waitForMs":1.5}`, `[1]`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		wait, reason, err := ReadRetry(raw)
		root, null, ok := parseFailure(raw)
		if null {
			if wait != 0 || reason != "" || err != nil {
				t.Fatalf("%q: got %d, %q, %v", raw, wait, reason, err)
			}
			return
		}
		number := root.get("waitForMs")
		var v float64
		if ok = ok && number != nil && number.kind == '0'; ok {
			var parseErr error
			v, parseErr = strconv.ParseFloat(string(number.raw), 64)
			ok = parseErr == nil && v >= 1 && v <= 2147483647 && v == float64(int64(v))
		}
		wantReason, _ := root.get("reason").text()
		if !ok {
			v, wantReason = 0, ""
		}
		if float64(wait) != v || reason != wantReason || (err == nil) != ok {
			t.Fatalf("%q: got %d, %q, %v, want %v, %q", raw, wait, reason, err, v, wantReason)
		}
	})
}
