package listener

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHasDotSegment(t *testing.T) {
	with := []string{
		"/.", "/..", "/./", "/../", "/a/./b", "/a/../b", "/a/..", "..", ".", "/v2/../x", "//../", "/a//..",
		"/%2e", "/%2E/", "/%2e%2e/", "/.%2e/", "/%2e./x", "/v2/%2e%2e/x", "/a%2f..%2fb", "/a%2F%2e%2E",
		"/%252e%252e/", "/%25252e", "/%25%32e/", "/%2%65/", "/%%32e", "/%%32%65/x", `/a\..\b`, "/a%5c..%5Cb", "/%255c%2e",
	}
	for _, path := range with {
		if !hasDotSegment(path) {
			t.Errorf("%s has a dot segment", path)
		}
	}
	without := []string{
		"", "/", "*", "/...", "/.a", "/a.", "/..a", "/a..b", "/v2/x.y/manifests/sha256:0.0", "/%", "/%2", "/%zz", "/%2e%2e%2e",
		"/%2fa", "/.%2ea", "/%2ehidden", "/.well-known/x", "/%00", "/a%20b", "/%2g.", "/. ", "/%2e%20",
	}
	for _, path := range without {
		if hasDotSegment(path) {
			t.Errorf("%s has no dot segment", path)
		}
	}
}

// slowUnescape undoes one escape at a time, wherever it finds one, until there
// is none.
func slowUnescape(s string) string {
	for i := 0; i+2 < len(s); i++ {
		const digits = "0123456789abcdef"
		high := strings.IndexByte(digits, lower(s[i+1]))
		low := strings.IndexByte(digits, lower(s[i+2]))
		if s[i] == '%' && high >= 0 && low >= 0 {
			return slowUnescape(s[:i] + string([]byte{byte(high<<4 | low)}) + s[i+3:])
		}
	}
	return s
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func TestUnescapeAllAgainstAnOracle(t *testing.T) {
	piece := rapid.SampledFrom([]string{"%", "%25", "2", "5", "e", "E", "%2e", "%2F", "/", ".", "x", "%32", "%65", "\\", "%5c", "\xff"})
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOfN(piece, 0, 24).Draw(t, "path"), "")
		if got, want := unescapeAll(path), slowUnescape(path); got != want {
			t.Fatalf("%q: got %q, want %q", path, got, want)
		}
	})
}

func FuzzHasDotSegment(f *testing.F) {
	for _, seed := range []string{"/", "/../", "/%252e%252e/x", "/%%32e", "/a%2f..", "%", `\..`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		want := false
		for _, segment := range strings.Split(strings.ReplaceAll(slowUnescape(path), `\`, "/"), "/") {
			want = want || segment == "." || segment == ".."
		}
		if got := hasDotSegment(path); got != want {
			t.Fatalf("%q: got %v, want %v", path, got, want)
		}
	})
}

// A path as long as a header may be costs no more than its length: undoing one
// level of escapes at a time would take half a billion steps.
func TestUnescapeAllIsLinear(t *testing.T) {
	path := "/%" + strings.Repeat("25", maxHeader/2) + "2e"
	if got := unescapeAll(path); got != "/." {
		t.Fatalf("unescaped to %d bytes", len(got))
	}
}
