package hub

import "net/netip"

// gate bounds the connections that are half open (design §5.1). It belongs to one
// goroutine at a time.
type gate struct {
	total   int
	subnets map[netip.Prefix]int
}

func newGate() gate { return gate{subnets: map[netip.Prefix]int{}} }

// subnetOf is the neighbourhood that an address counts for. An address that is not
// IPv4 counts for that of none.
func subnetOf(a netip.Addr) netip.Prefix {
	prefix, err := a.Unmap().Prefix(subnetBits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// admit counts one more connection from an address, or says which bound is met.
func (g *gate) admit(a netip.Addr) (handshakeEnd, bool) {
	subnet := subnetOf(a)
	switch {
	case g.total >= maxHalfOpen:
		return endFull, false
	case g.subnets[subnet] >= maxHalfOpenOfOne:
		return endSubnetFull, false
	}
	g.total++
	g.subnets[subnet]++
	return 0, true
}

// release gives the place of a connection back.
func (g *gate) release(a netip.Addr) {
	subnet := subnetOf(a)
	g.total--
	if g.subnets[subnet]--; g.subnets[subnet] == 0 {
		delete(g.subnets, subnet)
	}
}

// strained reports whether an address must prove that it is there before it costs
// anything: above half of either bound.
func (g *gate) strained(a netip.Addr) bool {
	return g.total >= maxHalfOpen/2 || g.subnets[subnetOf(a)] >= maxHalfOpenOfOne/2
}
