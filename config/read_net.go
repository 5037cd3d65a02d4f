package config

import (
	"net/netip"
	"strconv"
	"strings"

	"serve.zone/relay/contract"
)

// readOrigin reads a canonical origin; http is for loopback addresses.
func readOrigin(s string) (string, Rule) {
	o, ok := contract.ParseOrigin(s)
	if !ok {
		return "", NotOrigin
	}
	if o.Scheme == "http" {
		a, err := netip.ParseAddr(strings.Trim(o.Host, "[]"))
		if err != nil || !a.IsLoopback() {
			return "", NotSecure
		}
	}
	return s, ""
}

// readURL reads an origin with a plain path behind it. A user, a query or a
// fragment could hold a secret and has no place here.
func readURL(s string) (string, Rule) {
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		return "", NotURL
	}
	origin, path := rest, ""
	if at := strings.IndexByte(rest, '/'); at >= 0 {
		origin, path = rest[:at], rest[at:]
	}
	if path != "" && !isPath(path) {
		return "", NotURL
	}
	switch _, rule := readOrigin(scheme + "://" + origin); rule {
	case "":
		return s, ""
	case NotOrigin:
		return "", NotURL
	default:
		return "", rule
	}
}

// isPath reports whether s is the path of a URL that no reader on the way can
// take for another: no escape, query or dot segment.
func isPath(s string) bool {
	return s == "/" || contract.IsCorestorePath(strings.TrimSuffix(s, "/"))
}

func readPath(s string) (string, Rule) {
	if !isPath(s) {
		return "", NotPath
	}
	return s, ""
}

// readListen reads IPv4:port. Which addresses and ports are admitted depends on
// another setting, see judgeListen.
func readListen(s string) (netip.AddrPort, Rule) {
	host, port, ok := splitPort(s)
	if !ok {
		return netip.AddrPort{}, NotAddressPort
	}
	a, ok := contract.ParseIPv4(host)
	if !ok {
		return netip.AddrPort{}, Rule(contract.AddressNotIPv4)
	}
	return netip.AddrPortFrom(a, port), ""
}

// splitPort splits host:port at the last colon. The port is a decimal number
// without leading zeros.
func splitPort(s string) (host string, port uint16, ok bool) {
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(s[at+1:], 10, 16)
	return s[:at], uint16(n), err == nil && strconv.FormatUint(n, 10) == s[at+1:]
}

// readAddress reads an address literal of either family and a port.
func readAddress(s string) (netip.AddrPort, Rule) {
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.String() != s || a.Addr().Zone() != "" || a.Addr().Is4In6() {
		return netip.AddrPort{}, NotAddressPort
	}
	if a.Addr().IsMulticast() || contract.JudgeListenAddress(a.Addr().String()) == contract.AddressBroadcast {
		return netip.AddrPort{}, ManyHosts
	}
	return a, ""
}

// readServer reads a name or an address literal and a port to dial.
func readServer(s string) (string, Rule) {
	host, port, ok := splitPort(s)
	if !ok || port == 0 {
		return "", NotServer
	}
	// A host is what can stand in an origin; a port of its own it must not have.
	_, ok = contract.ParseOrigin("https://" + host)
	if !ok || strings.Contains(host, ":") && !strings.HasSuffix(host, "]") {
		return "", NotServer
	}
	return s, ""
}
