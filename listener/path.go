package listener

import "strings"

// hasDotSegment reports whether a path, as it was sent, has a segment "." or
// "..", escaped or not, and however often it was escaped: who it is handed on
// to may unescape it once more than we do. A backslash counts as a slash, as it
// does for the URLs of browsers.
func hasDotSegment(path string) bool {
	plain := unescapeAll(path)
	for segment := range strings.FieldsFuncSeq(plain, func(c rune) bool { return c == '/' || c == '\\' }) {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// unescapeAll undoes percent escapes until none is left. What is no escape
// stays. It looks at the end of what it has written, so that an escape made of
// unescaped characters is undone at once and the whole takes linear time.
func unescapeAll(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	plain := make([]byte, 0, len(path))
	for i := range len(path) {
		plain = append(plain, path[i])
		for n := len(plain); n >= 3 && plain[n-3] == '%'; n = len(plain) {
			high, low := unhex(plain[n-2]), unhex(plain[n-1])
			if high < 0 || low < 0 {
				break
			}
			plain = append(plain[:n-3], byte(high<<4|low))
		}
	}
	return string(plain)
}

// unhex returns the value of a hexadecimal digit, -1 for anything else.
func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
