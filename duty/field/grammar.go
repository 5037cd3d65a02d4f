package field

import (
	"encoding/base64"
	"net/netip"
	"strconv"
	"strings"

	"serve.zone/relay/duty/secret"
)

// maxWord bounds one word of a name, so that no key material passes for a
// name. The longest word in use, "unacknowledged", has 14 letters.
const maxWord = 24

// IsName reports whether s is a name: words of lower-case letters and digits
// joined by dashes, the first beginning with a letter, at most 64 bytes in
// all. Refusals, reasons, states, checks, events and duties have such names.
func IsName(s string) bool { return len(s) <= maxName && isName(s) }

func isName(s string) bool {
	if s == "" || !isLower(s[0]) {
		return false
	}
	for word := range strings.SplitSeq(s, "-") {
		if word == "" || len(word) > maxWord || !all(word, func(c byte) bool { return isLower(c) || isDigit(c) }) {
			return false
		}
	}
	return true
}

// isMethod accepts what method names are made of: the seeds' are in camel
// case, configured ones may have dots and dashes.
func isMethod(s string) bool {
	return s != "" && isLetter(s[0]) && all(s, func(c byte) bool {
		return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == '.'
	})
}

// isNode is the node rule of contract §2.1.
func isNode(s string) bool {
	return s != "" && all(s, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c == '-' })
}

// isDigest accepts both written forms of contract §2.2.
func isDigest(s string) bool {
	s = strings.TrimPrefix(s, "sha256:")
	return len(s) == 64 && all(s, func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' })
}

// isKey accepts the one canonical base64 encoding of 32 bytes.
func isKey(s string) bool {
	raw, err := base64.StdEncoding.DecodeString(s)
	return err == nil && len(raw) == 32 && base64.StdEncoding.EncodeToString(raw) == s
}

// isVersion accepts MAJOR.MINOR.PATCH without leading zeros.
func isVersion(s string) bool {
	parts := 0
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || len(part) > 1 && part[0] == '0' || !all(part, isDigit) {
			return false
		}
		parts++
	}
	return parts == 3
}

// isAddress accepts an address with a port and without a zone, which is free
// text.
func isAddress(s string) bool {
	a, err := netip.ParseAddrPort(s)
	return err == nil && a.Addr().Zone() == "" && a.String() == s
}

func isPrefix(s string) bool {
	p, err := netip.ParsePrefix(s)
	return err == nil && p.String() == s
}

// isHost accepts a host name of letters, digits and dashes (RFC 1123 §2.1),
// with underscores, which service names have, or an address literal.
func isHost(s string) bool {
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil {
		return a.Zone() == ""
	}
	s = strings.TrimSuffix(s, ".")
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || !isNode(label) {
			return false
		}
	}
	return true
}

// isOrigin accepts scheme, host and optional port, and nothing behind them: a
// path, a query or user information may carry a secret.
func isOrigin(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(s, "http://"); !ok {
			return false
		}
	}
	host, port := rest, ""
	if at := strings.LastIndexByte(rest, ':'); at > strings.LastIndexByte(rest, ']') {
		host, port = rest[:at], rest[at+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
			return false
		}
	}
	return isHost(host)
}

// isPath accepts a plain path. Its elements are judged one by one, since the
// slash is also a character of base64 and would join them to one long run.
func isPath(s string) bool {
	for element := range strings.SplitSeq(s, "/") {
		if secret.Find(element) != secret.None {
			return false
		}
	}
	return s != "" && all(s, func(c byte) bool {
		return isLetter(c) || isDigit(c) || strings.IndexByte("/._-+@,", c) >= 0
	})
}

// isPrintable accepts what this package itself composes.
func isPrintable(s string) bool {
	return all(s, func(c byte) bool { return c >= ' ' && c <= '~' })
}

func all(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return isLower(c) || c >= 'A' && c <= 'Z' }
