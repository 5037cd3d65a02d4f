package contract

import "net/netip"

// ParseIPv4 reads an IPv4 literal: a dotted quad without leading zeros
// (contract §2.2).
func ParseIPv4(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() || a.String() != s {
		return netip.Addr{}, false
	}
	return a, true
}

// IsIPv4 reports whether s is a canonical IPv4 literal.
func IsIPv4(s string) bool {
	_, ok := ParseIPv4(s)
	return ok
}

// ParseIPv4Prefix reads a canonical IPv4 CIDR: a dotted quad whose host bits
// are zero, a slash and 0 to 32 without leading zeros.
func ParseIPv4Prefix(s string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is4() || p.Masked() != p || p.String() != s {
		return netip.Prefix{}, false
	}
	return p, true
}

// IsIPv4Prefix reports whether s is a canonical IPv4 CIDR.
func IsIPv4Prefix(s string) bool {
	_, ok := ParseIPv4Prefix(s)
	return ok
}

// AddressFault names why an IPv4 literal cannot be published as the address
// that nodes dial. It is both the reason's rule and the name an operator reads.
type AddressFault string

// The faults of an address, in the order they are looked for. Loopback and
// link-local have their own names by contract §5.3; the last three are refused
// too (contract O21).
const (
	AddressNotIPv4     AddressFault = "is not a canonical ipv4 literal"
	AddressLoopback    AddressFault = "is a loopback address"
	AddressLinkLocal   AddressFault = "is a link-local address"
	AddressUnspecified AddressFault = "is the unspecified address"
	AddressMulticast   AddressFault = "is a multicast address"
	AddressBroadcast   AddressFault = "is the broadcast address"
)

// JudgeListenAddress returns why s cannot be a listen address, or "" when it
// can (contract §5.3). A caller that permits loopback, as tests do, compares
// with AddressLoopback.
func JudgeListenAddress(s string) AddressFault {
	a, ok := ParseIPv4(s)
	switch {
	case !ok:
		return AddressNotIPv4
	case a.IsLoopback():
		return AddressLoopback
	case a.IsLinkLocalUnicast():
		return AddressLinkLocal
	case a.IsUnspecified():
		return AddressUnspecified
	case a.IsMulticast():
		return AddressMulticast
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return AddressBroadcast
	}
	return ""
}

// IsUnicastIPv4 reports whether s is an IPv4 literal that names one host: not
// the unspecified, a multicast or the broadcast address. Loopback and
// link-local addresses name one host.
func IsUnicastIPv4(s string) bool {
	switch JudgeListenAddress(s) {
	case "", AddressLoopback, AddressLinkLocal:
		return true
	}
	return false
}
