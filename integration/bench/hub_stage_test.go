package bench

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network/networktest"
	"serve.zone/relay/integration/rig"
)

// hubStage is the built relay with a hub.
type hubStage struct {
	*rig.Rig
	hub     hubAt
	network contract.VPNNetwork // as it was pushed last
	// applying is how often the hub answered that packets of the network before may still
	// leave.
	applying int
}

// newHubStage starts a relay with a hub and gives it a network of networktest, whose
// node i gets benchKey(i+1).
func newHubStage(b *testing.B, network contract.VPNNetwork) *hubStage {
	b.Helper()
	s := &hubStage{Rig: newRig(b), network: network}
	s.Set("hub-listen", "127.0.0.1:0")
	s.Start()
	s.WaitReady()
	for i := range s.network.Nodes {
		s.network.Nodes[i].PublicKey = benchKey(i + 1).Public().String()
		s.network.Nodes[i].ExpiresAt = time.Now().Add(time.Hour).UnixMilli()
	}
	all := s.Cloudly.Registrations()
	facts := all[len(all)-1].Relay.VPNHub
	key, ok := contract.ParseNoiseKey(facts.PublicKey)
	if !ok {
		b.Fatalf("the hub's key is %q", facts.PublicKey)
	}
	s.hub = hubAt{
		address:   netip.AddrPortFrom(netip.MustParseAddr(facts.Address), uint16(facts.QUICPort)),
		key:       key,
		authority: network.AuthorityID,
	}
	s.push(b)
	return s
}

// push gives the hub the network under the next revision, and again while it answers
// that packets of the one before may still leave. It returns how long it took until it
// was effective, from Cloudly's end.
func (s *hubStage) push(b *testing.B) time.Duration {
	b.Helper()
	s.network.Revision++
	for begin := time.Now(); ; s.applying++ {
		answer, err := s.Cloudly.ApplyNetwork(s.Soon(), s.network)
		if err == nil && answer.State == contract.VPNNetworkIdle && answer.AppliedRevision == s.network.Revision {
			return time.Since(begin)
		}
		if err != nil || answer.State != contract.VPNNetworkApplying {
			b.Fatalf("revision %d was answered %+v, %v", s.network.Revision, answer, err)
		}
	}
}

// join connects nodes, each as its own member.
func (s *hubStage) join(b *testing.B, nodes ...int) []*end {
	b.Helper()
	ends, failures := make([]*end, len(nodes)), make([]error, len(nodes))
	// As many at a time as the hub takes of one /24.
	places := make(chan struct{}, 32)
	var joining sync.WaitGroup
	for i, n := range nodes {
		joining.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			ends[i], failures[i] = s.hub.join(benchKey(n + 1))
		})
	}
	joining.Wait()
	for i, err := range failures {
		if err != nil {
			b.Fatalf("node %d: %v", nodes[i], err)
		}
		b.Cleanup(ends[i].close)
	}
	return ends
}

// mallocs is how many objects the relay has allocated.
func (s *hubStage) mallocs() uint64 {
	n, ok := s.Metrics().Value("go_memstats_mallocs_total")
	if !ok {
		panic("the relay does not say what it has allocated")
	}
	return uint64(n)
}

// workload is an address of node i's workloads in a network of networktest.
func workload(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i), 0, 7}) }

// pairedNetwork has pairs of nodes, of which the first may send to the second.
func pairedNetwork(pairs int) contract.VPNNetwork {
	var grants []string
	for i := range pairs {
		grants = append(grants, fmt.Sprintf("d%d.0", 2*i), fmt.Sprintf("d%d.0", 2*i+1))
	}
	return networktest.Grant(networktest.Grid(2*pairs, 1), grants...)
}

// hubLane makes flows through the hub, one for each pair.
func hubLane(b *testing.B, s *hubStage, pairs, size int) *lane {
	b.Helper()
	l := &lane{pid: s.PID(), mallocs: s.mallocs}
	var nodes []int
	for i := range 2 * pairs {
		nodes = append(nodes, i)
	}
	ends := s.join(b, nodes...)
	for i := range pairs {
		from, to := ends[2*i], ends[2*i+1]
		packet := ipv4Packet(workload(2*i), workload(2*i+1), size)
		grow(b, packet, from, to, func() bool { return to.pathSize.Load() >= int64(size) })
		l.flows = append(l.flows, newFlow(from, to, packet))
	}
	return l
}

// bareLane makes the same flows through a bare relay, in either role.
func bareLane(b *testing.B, role string, pairs, size int) *lane {
	b.Helper()
	p := start(b, role, "")
	at := netip.MustParseAddrPort(p.address)
	l := &lane{pid: p.cmd.Process.Pid, mallocs: func() uint64 { return p.usage(b).allocs }}
	for i := range pairs {
		var both [2]*end
		for k := range both {
			var err error
			if both[k], err = register(at, workload(2*i+k).As4()); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(both[k].close)
		}
		packet := ipv4Packet(workload(2*i), workload(2*i+1), size)
		f := newFlow(both[0], both[1], packet)
		grow(b, packet, both[0], both[1], func() bool { return f.grown.Load() })
		l.flows = append(l.flows, f)
	}
	return l
}
