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
	total     int
	subnets   map[netip.Prefix]int
	held      []*place
	displaced int // connections whose place is another's, and which have not ended yet
}

// place is one of the places for connections that are half open. All but address and since
// is guarded by Hub.gateMu.
type place struct {
	address netip.Addr
	since   time.Time

	conn  *quic.Conn // nil until QUIC has handed the connection over
	left  bool       // it is free, or another connection's
	lost  bool       // it was taken for another connection
	ended bool       // its connection has ended
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

// admit gives a place to a connection from an address. Where a bound is met, it is that of
// another connection, over, which has to end; where none can be taken either, there is no
// place, and how says which bound it is.
func (g *gate) admit(a netip.Addr, since time.Time) (p, over *place, how handshakeEnd) {
	subnet := subnetOf(a)
	crowded := g.subnets[subnet] >= maxHalfOpenOfOne
	if crowded || g.total >= maxHalfOpen {
		if over = g.take(subnet, crowded); over == nil && crowded {
			return nil, nil, endSubnetFull
		} else if over == nil {
			return nil, nil, endFull
		}
	}
	p = &place{address: a, since: since}
	g.held = append(g.held, p)
	g.total++
	g.subnets[subnet]++
	return p, over, 0
}

// take takes the place of another connection, of one neighbourhood alone where that is
// crowded. Which it is is drawn: whoever fills the places loses them as fast as he comes,
// and a node that needs its own for moments mostly keeps it.
func (g *gate) take(subnet netip.Prefix, crowded bool) *place {
	if g.displaced >= maxDisplaced {
		return nil
	}
	var drawn *place
	matching := 0
	for _, p := range g.held {
		if crowded && subnetOf(p.address) != subnet {
			continue
		}
		if matching++; rand.IntN(matching) == 0 {
			drawn = p
		}
	}
	if drawn != nil {
		g.leave(drawn)
		drawn.lost = true
		g.displaced++
	}
	return drawn
}

// leave gives a place back, and reports whether it was held until now.
func (g *gate) leave(p *place) bool {
	if p.left {
		return false
	}
	p.left = true
	i := slices.Index(g.held, p)
	g.held = slices.Delete(g.held, i, i+1)
	subnet := subnetOf(p.address)
	g.total--
	if g.subnets[subnet]--; g.subnets[subnet] == 0 {
		delete(g.subnets, subnet)
	}
	return true
}

// end notes that the connection of a place has ended, once.
func (g *gate) end(p *place) {
	g.leave(p)
	if p.lost && !p.ended {
		g.displaced--
	}
	p.ended = true
}

// strained reports whether an address must prove that it is there before it costs
// anything: above half of either bound.
func (g *gate) strained(a netip.Addr) bool {
	return g.total >= maxHalfOpen/2 || g.subnets[subnetOf(a)] >= maxHalfOpenOfOne/2
}
