package envelope

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions of this file take raw: what stands between the quotes of a
// string whose grammar stringEnd has accepted.

// unescape appends the text of raw to dst. It reports false, and appends part
// of it, when raw holds a lone surrogate and so has no text in UTF-8. The text
// is never longer than raw.
func unescape(dst, raw []byte) ([]byte, bool) {
	for {
		plain := bytes.IndexByte(raw, '\\')
		if plain < 0 {
			return append(dst, raw...), true
		}
		dst = append(dst, raw[:plain]...)
		raw = raw[plain:]
		r, n := escapeRune(raw)
		if n == 0 {
			return dst, false
		}
		dst = utf8.AppendRune(dst, r)
		raw = raw[n:]
	}
}

// escapeRune reads the escape that raw starts with, both halves of a surrogate
// pair together. It returns a length of 0 for a lone surrogate.
func escapeRune(raw []byte) (r rune, n int) {
	switch c := raw[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return rune(c), 2
	}
	r, _ = hex4(raw, 2)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if at(raw, 6) != '\\' || at(raw, 7) != 'u' {
		return 0, 0
	}
	low, _ := hex4(raw, 8)
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

// loneSurrogate returns the index of the first lone surrogate in raw, or -1.
func loneSurrogate(raw []byte) int {
	for i := 0; ; {
		plain := bytes.IndexByte(raw[i:], '\\')
		if plain < 0 {
			return -1
		}
		i += plain
		_, n := escapeRune(raw[i:])
		if n == 0 {
			return i
		}
		i += n
	}
}

// hasText says whether the text of raw is want. It allocates nothing: an
// escaped raw is only read when it is short enough to be a node id, the
// longest text it is asked for.
func hasText[Text ~string | ~[]byte](raw []byte, escaped bool, want Text) bool {
	if !escaped {
		return string(raw) == string(want)
	}
	if len(raw) > MaxNodeIDBytes {
		return false
	}
	var buffer [MaxNodeIDBytes]byte
	text, ok := unescape(buffer[:0], raw)
	return ok && string(text) == string(want)
}
