package envelope

import (
	"bytes"
	"regexp"
	"testing"
)

const (
	sampleID       = "uni_a0a1a2a3a4a5a6a7a8a9aaab"
	sampleInstance = "uni_00112233445566778899aabb"
)

func quoted(s string) []byte { return AppendString(nil, s) }

// TestCompose holds down every byte, against the examples of the
// specification.
func TestCompose(t *testing.T) {
	response := func(body string, instance, errorValue, retryValue []byte) []byte {
		text := AppendResponseHead([]byte("before "), "getUnit")
		text = append(text, body...)
		return AppendResponseTail(text, quoted(sampleID), instance, errorValue, retryValue)[len("before "):]
	}
	unitUnknown := AppendError(nil, "unit unknown", []byte(`{"code":"UNIT_UNKNOWN"}`))
	starting := AppendRetry(nil, 2000, "starting")
	for _, c := range []struct {
		name, want string
		got        []byte
	}{
		{
			"request",
			`{"method":"getUnit","request":{"unitId":"u1"},"response":null,"requestInstanceId":"uni_00112233445566778899aabb","correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"request"}}`,
			joinRequest("getUnit", `{"unitId":"u1"}`, sampleID, sampleInstance),
		},
		{
			"response",
			`{"method":"getUnit","request":null,"response":{"name":"one"},"requestInstanceId":"uni_00112233445566778899aabb","correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"response"}}`,
			response(`{"name":"one"}`, quoted(sampleInstance), nil, nil),
		},
		{
			"response without an instance id",
			`{"method":"getUnit","request":null,"response":null,"correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"response"}}`,
			response(`null`, nil, nil, nil),
		},
		{
			"error",
			`{"method":"getUnit","request":null,"response":null,"requestInstanceId":"uni_00112233445566778899aabb","correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"response"},"error":{"text":"unit unknown","data":{"code":"UNIT_UNKNOWN"}}}`,
			response(`null`, quoted(sampleInstance), unitUnknown, nil),
		},
		{
			"retry",
			`{"method":"getUnit","request":null,"response":null,"requestInstanceId":"uni_00112233445566778899aabb","correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"response"},"retry":{"waitForMs":2000,"reason":"starting"}}`,
			response(`null`, quoted(sampleInstance), nil, starting),
		},
		{
			"error and retry",
			`{"method":"getUnit","request":null,"response":null,"correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"response"},"error":{"text":"","data":{}},"retry":{"waitForMs":1,"reason":"\"\\"}}`,
			response(`null`, nil, AppendError(nil, "", nil), AppendRetry(nil, 1, `"\`)),
		},
	} {
		if string(c.got) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.got, c.want)
		}
		compareWithReference(t, c.got)
	}
}

// TestComposeEchoesTokens: an id comes back in the spelling it came in.
func TestComposeEchoesTokens(t *testing.T) {
	f := scan(t, `{"method":"m","request":{},"requestInstanceId":"\u0072\/","correlation":{"id":"\ud83d\ude00","phase":"request"}}`)
	text := AppendResponseHead(nil, string(f.Method))
	text = append(text, `{}`...)
	text = AppendResponseTail(text, f.IDToken, f.InstanceToken, nil, nil)
	const want = `{"method":"m","request":null,"response":{},"requestInstanceId":"\u0072\/","correlation":{"id":"\ud83d\ude00","phase":"response"}}`
	if string(text) != want {
		t.Errorf("got %s", text)
	}
}

// TestAppendString holds what JSON.stringify writes.
func TestAppendString(t *testing.T) {
	for s, want := range map[string]string{
		``:                          `""`,
		`plain text`:                `"plain text"`,
		`"\/`:                       `"\"\\/"`,
		"\b\t\n\f\r":                `"\b\t\n\f\r"`,
		"\x00\x01\x0b\x0e\x1f":      `"\u0000\u0001\u000b\u000e\u001f"`,
		"\x7f<>&'":                  "\"\x7f<>&'\"",
		"é\u2028\u2029\ufeff😀":      "\"é\u2028\u2029\ufeff😀\"",
		"a\xffb\xc3":                "\"a\ufffdb\ufffd\"",
		"\xed\xa0\x80":              "\"\ufffd\ufffd\ufffd\"",
		"\ufffd":                    "\"\ufffd\"",
		"a\"b":                      `"a\"b"`,
		"long enough to copy \n é!": `"long enough to copy \n é!"`,
	} {
		if got := string(AppendString([]byte("x"), s)); got != "x"+want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestComposeAllocatesNothing(t *testing.T) {
	buffer := make([]byte, 0, 1024)
	id, instance := quoted(sampleID), quoted(sampleInstance)
	allocs := testing.AllocsPerRun(100, func() {
		text := AppendRequestHead(buffer, "getUnit")
		text = AppendRequestTail(text, sampleID, sampleInstance)
		text = AppendResponseHead(text, "getUnit")
		AppendResponseTail(text, id, instance, nil, nil)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`\Auni_[0-9a-f]{24}\z`)
	seen := map[string]bool{}
	var ones [96]int
	const n = 4096
	for range n {
		id := NewID([]byte("x"))
		if id[0] != 'x' || !form.Match(id[1:]) || seen[string(id)] {
			t.Fatalf("id %q", id)
		}
		seen[string(id)] = true
		for bit := range ones {
			digit := bytes.IndexByte([]byte("0123456789abcdef"), id[5+bit/4])
			ones[bit] += digit >> (bit % 4) & 1
		}
	}
	for bit, count := range ones { // ten standard deviations of 32
		if count < n/2-320 || count > n/2+320 {
			t.Errorf("bit %d is set in %d of %d ids", bit, count, n)
		}
	}
}

// TestOutgrownMemoryHoldsNothingOfAnError, however much room there was: whoever zeroes
// what is returned leaves nothing.
func TestOutgrownMemoryHoldsNothingOfAnError(t *testing.T) {
	data := []byte(`{"s":"SECRET"}`)
	id := []byte(`"c"`)
	for name, compose := range map[string]func(dst []byte) []byte{
		"error": func(dst []byte) []byte { return AppendError(dst, "no", data) },
		"tail":  func(dst []byte) []byte { return AppendResponseTail(dst, id, id, data, data) },
	} {
		outgrown := 0
		for size := range 300 {
			room := make([]byte, size)
			got := compose(room[:0])
			if !bytes.Contains(got, data) {
				t.Fatalf("%s: %q", name, got)
			}
			if cap(got) == size {
				continue
			}
			if outgrown++; bytes.Contains(room, []byte("SECRET")) {
				t.Errorf("%s: %q is left in %d bytes that were too few", name, room, size)
			}
		}
		if outgrown == 0 {
			t.Errorf("%s: always enough room", name)
		}
	}
}
