package contract

import (
	"net/netip"
	"strconv"
	"strings"
)

// Bounds of a DNS name in an origin (RFC 1035 §2.3.4).
const (
	maximumHostNameLength = 253
	maximumLabelLength    = 63
)

// Origin is a canonical web origin in its parts.
type Origin struct {
	Scheme string // "http" or "https"
	Host   string // DNS name or IPv4 literal, or IPv6 literal in brackets
	Port   int    // the stated port, else the scheme's own
}

// IsAddress reports whether the host is an address literal, for which no
// certificate is issued (contract §5.4).
func (o Origin) IsAddress() bool {
	if strings.HasPrefix(o.Host, "[") {
		return true
	}
	return IsIPv4(o.Host)
}

// ParseOrigin reads a canonical http or https origin: one for which
// `new URL(s).origin === s` holds, so no path, query, fragment, user or
// trailing slash, a lower-case host, and no port that is the scheme's own
// (contract §5.4, §12.1).
//
// It is narrower than a browser's reader: host names are labels of letters,
// digits, '-' and '_', and end without a dot. An "xn--" label is taken by its
// characters.
func ParseOrigin(s string) (Origin, bool) {
	o := Origin{Scheme: "https", Port: 443}
	rest, found := strings.CutPrefix(s, "https://")
	if !found {
		o = Origin{Scheme: "http", Port: 80}
		if rest, found = strings.CutPrefix(s, "http://"); !found {
			return Origin{}, false
		}
	}
	o.Host = rest
	if at := strings.LastIndexByte(rest, ':'); at >= 0 && !strings.HasSuffix(rest, "]") {
		port, ok := parseOriginPort(rest[at+1:])
		if !ok || port == o.Port {
			return Origin{}, false
		}
		o.Host, o.Port = rest[:at], port
	}
	if !isOriginHost(o.Host) {
		return Origin{}, false
	}
	return o, true
}

// IsRelayOrigin reports whether s is a cluster relay origin: a canonical https
// origin (contract §5.4).
func IsRelayOrigin(s string) bool {
	o, ok := ParseOrigin(s)
	return ok && o.Scheme == "https"
}

// IsHTTPOrigin reports whether s is a canonical http or https origin, the form
// of a Corestore endpoint (contract §12.1).
func IsHTTPOrigin(s string) bool {
	_, ok := ParseOrigin(s)
	return ok
}

func parseOriginPort(s string) (int, bool) {
	port, err := strconv.ParseUint(s, 10, 16)
	if err != nil || port == 0 || s[0] == '0' {
		return 0, false
	}
	return int(port), true
}

func isOriginHost(host string) bool {
	if inner, found := strings.CutPrefix(host, "["); found {
		inner, found = strings.CutSuffix(inner, "]")
		return found && isOriginIPv6(inner)
	}
	labels := strings.Split(host, ".")
	if len(host) > maximumHostNameLength {
		return false
	}
	for _, label := range labels {
		if !isHostLabel(label) {
			return false
		}
	}
	// A browser reads a host whose last label is a number as an IPv4 address.
	if isNumericLabel(labels[len(labels)-1]) {
		return IsIPv4(host)
	}
	return true
}

// isOriginIPv6 reports whether s is an IPv6 literal as a browser writes it. An
// embedded IPv4 address, which Go writes in dots, is not taken.
func isOriginIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && !a.Is4In6() && a.Zone() == "" && a.String() == s
}

func isHostLabel(label string) bool {
	if len(label) == 0 || len(label) > maximumLabelLength {
		return false
	}
	for i := 0; i < len(label); i++ {
		switch c := label[i]; {
		case c >= 'a' && c <= 'z', isDigit(c), c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// isNumericLabel follows the URL standard: all digits, or "0x" and hex digits.
func isNumericLabel(label string) bool {
	digits := isDigit
	if rest, found := strings.CutPrefix(label, "0x"); found {
		label, digits = rest, isLowerHex
	}
	for i := 0; i < len(label); i++ {
		if !digits(label[i]) {
			return false
		}
	}
	return true
}
