package hub

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/quic-go/quic-go"
)

// gate bounds the connections that are half open (design §5.1). It belongs to one
// goroutine at a time.
type gate struct {
	total   int
	subnets map[netip.Prefix]int
	waiting []*place // whose connection can be closed
}

// place is one of the places for connections that are half open.
type place struct {
	address netip.Addr
	since   time.Time

	// Guarded by Hub.gateMu.
	conn *quic.Conn // nil as long as the connection cannot be closed
	left bool       // it is free, or another connection's
	lost bool       // it was taken for another connection
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

// take takes the place of another connection where a bound keeps one from an address out,
// and returns it; nil where there is room, or no place that can be taken. Which it is is
// drawn: whoever fills the places loses them as fast as he comes, and a node that needs
// its own for moments mostly keeps it.
func (g *gate) take(a netip.Addr) *place {
	subnet := subnetOf(a)
	crowded := g.subnets[subnet] >= maxHalfOpenOfOne
	if !crowded && g.total < maxHalfOpen {
		return nil
	}
	from := rand.IntN(max(len(g.waiting), 1))
	for i := range g.waiting {
		p := g.waiting[(from+i)%len(g.waiting)]
		if !crowded || subnetOf(p.address) == subnet {
			g.leave(p)
			p.lost = true
			return p
		}
	}
	return nil
}

// leave gives a place back, and reports whether it was held until now.
func (g *gate) leave(p *place) bool {
	if p.left {
		return false
	}
	p.left = true
	if i := slices.Index(g.waiting, p); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	g.release(p.address)
	return true
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
