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

// ways looks at what the hub sends to one node, and loses for a while what some nodes
// send, so that QUIC at the hub is held back and packets wait for them.
type ways struct {
	mu     sync.Mutex
	silent bool
	all    int // datagrams that held a packet for the node
	late   int // of them, those that left although an effective revision forbids them
}

// watchWays has the network look. Even revisions forbid all packets to the last node.
func watchWays(r *rig, silenced ...*node) *ways {
	w := &ways{}
	var from []netip.AddrPort
	for _, n := range silenced {
		from = append(from, n.socket.(*memSocket).at)
	}
	target := from[len(from)-1]
	r.net.watch(func(source, to netip.AddrPort, b []byte) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if to == target && len(b) > largeDatagram {
			r.Hub.mu.Lock()
			effective := !r.state.applying && r.state.applied%2 == 0
			r.Hub.mu.Unlock()
			w.all++
			if effective {
				w.late++
			}
		}
		return w.silent && slices.Contains(from, source)
	})
	return w
}

func (w *ways) silence(on bool) { w.mu.Lock(); defer w.mu.Unlock(); w.silent = on }

func (w *ways) count() (all, late int) { w.mu.Lock(); defer w.mu.Unlock(); return w.all, w.late }

// stream sends some packets from one node to another every millisecond, until stopped;
// then it returns how many.
func stream(n *node, from, to int) (stop func() int) {
	const each = 5
	end, sent := make(chan struct{}), make(chan int)
	go func() {
		for number := 0; ; {
			select {
			case <-end:
				sent <- number
				return
			case <-time.After(time.Millisecond):
				for range each {
					n.send(packetOf(ip(from), ip(to), 800+number%300, number))
					number++
				}
			}
		}
	}()
	return func() int { close(end); return <-sent }
}

// waiting is how many packets wait for a member that is connected.
func (r *rig) waiting(i int) int {
	for k := range r.routes {
		if s := r.routes[k].Load(); s != nil && s.seat.node == fmt.Sprintf("node-%03d", i) {
			s.out.mu.Lock()
			defer s.out.mu.Unlock()
			return s.out.queue.count
		}
	}
	return 0
}

// R60, R66: with the largest networks in force, revisions under traffic lose no packet
// of a flow that both grant, and from idle on none leaves that is not granted; also of
// those that wait for members when the revision comes.
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
				w := watchWays(r, b, target)
				stopGranted, stopToggled := stream(a, 0, 1), stream(toggled, 4, 5)
				var waitedGranted, waitedToggled int
				const revisions = 5
				for revision := int64(2); revision <= revisions; revision++ {
					time.Sleep(15 * time.Millisecond)
					w.silence(true)
					time.Sleep(25 * time.Millisecond)
					time.AfterFunc(5*time.Millisecond, func() { w.silence(false) })
					next := renewed(x, revision)
					if revision%2 == 0 {
						next = barred(next, revision, 4, 5)
						waitedGranted, waitedToggled = waitedGranted+r.waiting(1), waitedToggled+r.waiting(5)
					}
					r.applyWhole(c, next)
				}
				time.Sleep(20 * time.Millisecond)
				n, tried := stopGranted(), stopToggled()
				settle()
				if got := distinct(numbers(b.take())); got != n {
					t.Errorf("%d of %d granted packets arrived", got, n)
				}
				all, late := w.count()
				if passed := distinct(numbers(target.take())); passed < tried/5 || passed > tried-tried/5 || all < passed {
					t.Errorf("%d of %d packets passed that half of the revisions grant", passed, tried)
				}
				if late != 0 {
					t.Errorf("%d forbidden packets left when it was idle", late)
				}
				if waitedGranted == 0 || waitedToggled == 0 {
					t.Errorf("when revisions came %d granted and %d forbidden packets waited", waitedGranted, waitedToggled)
				}
				if m := r.member(0); m.Sessions != 1 || len(m.Dropped) != 0 {
					t.Errorf("%+v", m)
				}
			})
		})
	}
}

// applyWhole pushes a network, and again while the one before is still on its way out.
func (r *rig) applyWhole(c *cloud, x contract.VPNNetwork) {
	r.t.Helper()
	got := c.apply(x)
	for got == fmt.Sprintf("applying %d", x.Revision-1) {
		got = c.apply(x)
	}
	if got != fmt.Sprintf("idle %d", x.Revision) {
		r.t.Fatalf("revision %d: %s", x.Revision, got)
	}
}

// distinct is how many different numbers there are.
func distinct(numbers []int) int {
	slices.Sort(numbers)
	return len(slices.Compact(numbers))
}
