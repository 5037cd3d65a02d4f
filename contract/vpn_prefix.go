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

// placedPrefix is the address range of a workload prefix and the place in the
// network where the prefix stands.
type placedPrefix struct {
	first, last uint32
	node, index int32
}

// placedPrefixes are all workload prefixes of one network.
type placedPrefixes []placedPrefix

func (s *placedPrefixes) add(p netip.Prefix, node, index int) {
	first, last := addressRange(p)
	*s = append(*s, placedPrefix{first, last, int32(node), int32(index)})
}

// judgeOverlap records every prefix that lies inside another one. The walk
// stands at the list of nodes.
//
// Two prefixes overlap only when one lies inside the other. Sorted by their
// first address, wider ones first, the prefixes inside one follow it directly,
// so one look at the last prefix that lay in no other decides: the cost is that
// of sorting.
func (s placedPrefixes) judgeOverlap(v *verdict) {
	slices.SortFunc(s, func(a, b placedPrefix) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last),
			cmp.Compare(a.node, b.node), cmp.Compare(a.index, b.index))
	})
	for i, outer := 1, 0; i < len(s); i++ {
		if s[i].last > s[outer].last {
			outer = i
			continue
		}
		if s[i].isRepetitionOf(s[i-1]) {
			continue // named where the list is judged as sorted and unique
		}
		v.enterIndex(int(s[i].node))
		v.enter("workloadPrefixes")
		v.enterIndex(int(s[i].index))
		v.addAt("cidr", "overlaps another workload prefix")
		v.leave()
		v.leave()
		v.leave()
	}
}

// isRepetitionOf reports whether a prefix repeats the one before it in the same
// node's list.
func (p placedPrefix) isRepetitionOf(before placedPrefix) bool {
	return p.first == before.first && p.last == before.last &&
		p.node == before.node && p.index == before.index+1
}
