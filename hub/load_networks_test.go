package hub

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network/networktest"
)

// largestNetworks are those of design §5.5. In both, node i may send to node i+1.
var largestNetworks = []struct {
	name string
	make func() contract.VPNNetwork
}{
	{"W", networktest.Wide}, {"G", networktest.Granting},
}

// keyed gives the nodes of a network of networktest the keys of this package's nodes.
func keyed(x contract.VPNNetwork) contract.VPNNetwork {
	x.Nodes = slices.Clone(x.Nodes)
	for i := range x.Nodes {
		x.Nodes[i].PublicKey = keyOf(i).Public().String()
	}
	return x
}

// barred is a network without the grant from one node to another, under a revision.
func barred(x contract.VPNNetwork, revision int64, from, to int) contract.VPNNetwork {
	x.Revision = revision
	source, destination := x.Nodes[from].WorkloadPrefixes[0].PolicyDomain, x.Nodes[to].WorkloadPrefixes[0].PolicyDomain
	x.Grants = slices.DeleteFunc(slices.Clone(x.Grants), func(g contract.VPNGrant) bool {
		return g.SourceDomain == source && g.DestinationDomain == destination
	})
	return x
}

// renewed is a network under a revision, with all memberships a little longer.
func renewed(x contract.VPNNetwork, revision int64) contract.VPNNetwork {
	x.Revision, x.Nodes = revision, slices.Clone(x.Nodes)
	for i := range x.Nodes {
		x.Nodes[i].ExpiresAt += revision
	}
	return x
}

// lateness counts datagrams that hold a packet for one node and leave the hub although
// a revision that forbids them is effective.
type lateness struct {
	mu        sync.Mutex
	all, late int
}

// watchLate has the network count. Even revisions forbid all packets to the node.
func watchLate(r *rig, to *node) *lateness {
	l := &lateness{}
	at := to.socket.(*memSocket).at
	r.net.watch(func(_, to netip.AddrPort, b []byte) bool {
		if to != at || len(b) <= largeDatagram {
			return false
		}
		r.Hub.mu.Lock()
		effective := !r.state.applying && r.state.applied%2 == 0
		r.Hub.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all++
		if effective {
			l.late++
		}
		return false
	})
	return l
}

func (l *lateness) count() (all, late int) { l.mu.Lock(); defer l.mu.Unlock(); return l.all, l.late }

// stream sends a packet from one node to another every millisecond, until stopped; then
// it returns how many.
func stream(n *node, from, to int) (stop func() int) {
	end, sent := make(chan struct{}), make(chan int)
	go func() {
		for number := 0; ; number++ {
			select {
			case <-end:
				sent <- number
				return
			case <-time.After(time.Millisecond):
				n.send(packetOf(ip(from), ip(to), 800+number%600, number))
			}
		}
	}()
	return func() int { close(end); return <-sent }
}

// R60, R66: with the largest networks in force, revisions under traffic lose no packet
// of a flow that both grant, and from idle on none leaves that is not granted.
func TestR60_R66_TheLargestNetworksAreSwappedUnderTraffic(t *testing.T) {
	for _, largest := range largestNetworks {
		t.Run(largest.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				c := r.cloudly()
				x := keyed(largest.make())
				c.must(renewed(x, 1))
				// 0 → 1 is granted always, 4 → 5 by every other revision.
				a, b, toggled, target := r.dial(0), r.dial(1), r.dial(4), r.dial(5)
				late := watchLate(r, target)
				stopGranted, stopToggled := stream(a, 0, 1), stream(toggled, 4, 5)
				const revisions = 7
				for revision := int64(2); revision <= revisions; revision++ {
					time.Sleep(20 * time.Millisecond)
					next := renewed(x, revision)
					if revision%2 == 0 {
						next = barred(next, revision, 4, 5)
					}
					if got := c.apply(next); got != fmt.Sprintf("idle %d", revision) {
						t.Fatalf("revision %d: %s", revision, got)
					}
				}
				time.Sleep(20 * time.Millisecond)
				n, tried := stopGranted(), stopToggled()
				settle()
				if got := distinct(numbers(b.take())); got != n {
					t.Errorf("%d of %d granted packets arrived", got, n)
				}
				all, forbidden := late.count()
				if passed := distinct(numbers(target.take())); passed < tried/4 || passed > tried-tried/4 || all < passed {
					t.Errorf("%d of %d packets passed that half of the revisions grant", passed, tried)
				}
				if forbidden != 0 {
					t.Errorf("%d forbidden packets left when it was idle", forbidden)
				}
				if m := r.member(0); m.Sessions != 1 || len(m.Dropped) != 0 {
					t.Errorf("%+v", m)
				}
			})
		})
	}
}

// distinct is how many different numbers there are.
func distinct(numbers []int) int {
	slices.Sort(numbers)
	return len(slices.Compact(numbers))
}
