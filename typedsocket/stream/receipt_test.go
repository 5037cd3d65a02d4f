package stream

import (
	"errors"
	"strings"
	"testing"
)

func TestReadReceipt(t *testing.T) {
	sent := Integrity{3, someDigest}
	ours := string(appendReceipt(nil, "s\"2", sent))
	if want := `{"streamId":"s\"2","algorithm":"sha256","byteLength":3,"digest":"` + someDigest + `"}`; ours != want {
		t.Errorf("our receipt is %s", ours)
	}
	const shape, length, digest = "not one strict JSON object", "byteLength is not that of the bytes sent", "digest is not that of the bytes sent"
	cases := []struct{ raw, rule string }{
		{ours, ""},
		{`{}`, ""},
		{`{"byteLength":3}`, ""},
		{`{"byteLength":3.0}`, ""},
		{`{"digest":"` + someDigest + `"}`, ""},
		{`{"acceptedAt":1,"streamId":"other","algorithm":"md5"}`, ""},
		{` { "bytelength" : 4 } `, ""},
		{`{"byteLength":4}`, length},
		{`{"byteLength":"3"}`, length},
		{`{"byteLength":null}`, length},
		{`{"byteLength":-3}`, length},
		{`{"digest":"sha256:00"}`, digest},
		{`{"digest":"` + strings.ToUpper(someDigest) + `"}`, digest},
		{`{"digest":null}`, digest},
		{`{"byteLength":3,"byteLength":3}`, shape},
		{`{"byteLength":3`, shape},
		{`{}{}`, shape},
		{`[]`, shape},
		{`null`, shape},
		{``, shape},
		{"{\"a\":\"\xff\"}", shape},
		{`{"a":"` + strings.Repeat("x", MaxReceipt) + `"}`, "longer than 4096 bytes"},
	}
	for _, c := range cases {
		r, err := readReceipt([]byte(c.raw), sent)
		if c.rule == "" {
			if err != nil || string(r.Raw) != c.raw || r.Integrity != sent {
				t.Errorf("%s: %+v, %v", c.raw, r, err)
			}
			continue
		}
		var wrong *ReceiptError
		if !errors.As(err, &wrong) || wrong.Rule != c.rule {
			t.Errorf("%.80s: got %v, want %s", c.raw, err, c.rule)
		}
	}
}

func TestLongestOwnReceiptFits(t *testing.T) {
	id := strings.Repeat("\x01", MaxStreamID)
	if n := len(appendReceipt(nil, id, Integrity{MaxTotal, someDigest})); n > MaxReceipt {
		t.Errorf("a receipt of ours may take %d bytes", n)
	}
}

func FuzzReadReceipt(f *testing.F) {
	sent := Integrity{3, someDigest}
	f.Add(appendReceipt(nil, "s2", sent))
	f.Add([]byte(`{"byteLength":3.0,"digest":null}`))
	f.Add([]byte(`{"byteLength":4}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := readReceipt(raw, sent)
		if err != nil {
			var wrong *ReceiptError
			if !errors.As(err, &wrong) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if string(r.Raw) != string(raw) || r.Integrity != sent {
			t.Fatalf("%s became %+v", raw, r)
		}
		// Accepted for these bytes, a receipt that counts must be refused for others.
		_, err = readReceipt(raw, Integrity{4, "sha256:" + strings.Repeat("0", 64)})
		says := strings.Contains(string(raw), "byteLength") || strings.Contains(string(raw), "digest")
		if err != nil && !says && !strings.Contains(string(raw), `\`) {
			t.Fatalf("%s names neither length nor digest, yet: %v", raw, err)
		}
	})
}
