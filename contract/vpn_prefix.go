package contract

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// privateRanges are the private ranges of RFC 1918 §3.
var privateRanges = [...]netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"),
}

func isPrivatePrefix(p netip.Prefix) bool {
	for _, r := range privateRanges {
		if r.Bits() <= p.Bits() && r.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

// addressRange returns the first and the last address of an IPv4 prefix as
// numbers.
func addressRange(p netip.Prefix) (first, last uint32) {
	b := p.Addr().As4()
	first = binary.BigEndian.Uint32(b[:])
	return first, first | ^uint32(0)>>p.Bits()
}

func addressOf(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// placedPrefix is a workload prefix as numbers that sort: its addresses, the
// first before the last complemented, so that of two prefixes that begin alike
// the wider one comes first; and its place, the node before the index.
type placedPrefix struct {
	span  uint64
	place uint64
}

func (p placedPrefix) last() uint32 { return ^uint32(p.span) }

func (p placedPrefix) node() int { return int(p.place >> 32) }

func (p placedPrefix) index() int { return int(uint32(p.place)) }

// placedPrefixes are all workload prefixes of one network.
type placedPrefixes []placedPrefix

func (s *placedPrefixes) add(p netip.Prefix, node, index int) {
	first, last := addressRange(p)
	*s = append(*s, placedPrefix{
		span:  uint64(first)<<32 | uint64(^last),
		place: uint64(node)<<32 | uint64(index),
	})
}

// judgeOverlap records every prefix that lies inside another one. The walk
// stands at the list of nodes.
//
// Two prefixes overlap only when one lies inside the other. Sorted by span, the
// prefixes inside one follow it directly, so one look at the last prefix that
// lay in no other decides: the cost is that of sorting.
func (s placedPrefixes) judgeOverlap(v *verdict) {
	slices.SortFunc(s, func(a, b placedPrefix) int {
		if c := cmp.Compare(a.span, b.span); c != 0 {
			return c
		}
		return cmp.Compare(a.place, b.place)
	})
	for i, outer := 1, 0; i < len(s); i++ {
		if s[i].last() > s[outer].last() {
			outer = i
			continue
		}
		if s[i].repeats(s[i-1]) {
			continue // named where the list is judged as sorted and unique
		}
		v.enterIndex(s[i].node())
		v.enter("workloadPrefixes")
		v.enterIndex(s[i].index())
		v.addAt("cidr", "overlaps another workload prefix")
		v.leave()
		v.leave()
		v.leave()
	}
}

// repeats reports whether a prefix is the same as the one before it in its
// node's list.
func (p placedPrefix) repeats(before placedPrefix) bool {
	return p.span == before.span && p.place == before.place+1
}
