package tun

import (
	"errors"
	"net/netip"
	"testing"
)

func TestOptions(t *testing.T) {
	prefix, six := netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd00::/64")
	tests := []struct {
		name string
		o    Options
		ok   bool
	}{
		{"least", Options{Name: "r"}, true},
		{"most", Options{Name: "relay-tunnel-12", Addresses: repeat(prefix, MaxRoutes), Routes: []Route{{To: prefix, Source: prefix.Addr()}}}, true},
		{"no name", Options{}, false},
		{"a long name", Options{Name: "relay-tunnel-123"}, false},
		{"too many addresses", Options{Name: "r", Addresses: repeat(prefix, MaxRoutes+1)}, false},
		{"an ipv6 address", Options{Name: "r", Addresses: []netip.Prefix{six}}, false},
		{"an ipv6 route", Options{Name: "r", Routes: []Route{{To: six}}}, false},
		{"a route with host bits", Options{Name: "r", Routes: []Route{{To: netip.MustParsePrefix("10.2.0.1/16")}}}, false},
		{"no route", Options{Name: "r", Routes: []Route{{}}}, false},
		{"an ipv6 source", Options{Name: "r", Routes: []Route{{To: prefix, Source: six.Addr()}}}, false},
	}
	for _, test := range tests {
		if err := test.o.validate(); (err == nil) != test.ok || err != nil && !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func repeat(p netip.Prefix, n int) []netip.Prefix {
	all := make([]netip.Prefix, n)
	for i := range all {
		all[i] = p
	}
	return all
}
