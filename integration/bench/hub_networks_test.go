package bench

import (
	"encoding/binary"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network/networktest"
)

// The largest networks at a hub that all 256 members are connected to.
const (
	networkPushes = 20
	// swapFlows are granted by all revisions. In networks W and G, node i may send to
	// node i+1.
	swapFlows  = 8
	swapWindow = 16
	// barredFrom may send to barredTo by every other revision.
	barredFrom, barredTo = 100, 101
	// barredPace is the time between two packets of that flow.
	barredPace = 500 * time.Microsecond
	// forbiddenSpan is how long it goes on sending when it is forbidden.
	forbiddenSpan = 50 * time.Millisecond
)

// BenchmarkHubNetworks puts the largest networks of design §5.5 in force at the built
// relay with 256 members, and prints the memory of an idle one, how long an apply takes
// from Cloudly's end, and what swaps among packets have lost and let through.
func BenchmarkHubNetworks(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(driverGC))
	for _, largest := range []struct {
		name string
		make func() contract.VPNNetwork
	}{{"W", networktest.Wide}, {"G", networktest.Granting}} {
		b.Run(largest.name, func(b *testing.B) {
			s := newHubStage(b, largest.make())
			for b.Loop() {
				measureNetworks(b, s)
			}
		})
	}
}

func measureNetworks(b *testing.B, s *hubStage) {
	alone := settledMemory(b, s.Rig)
	s.join(b, 255)[0].close() // what the first one makes is not its own
	before := settledMemory(b, s.Rig)
	var nodes []int
	for i := range s.network.Nodes {
		nodes = append(nodes, i)
	}
	ends := s.join(b, nodes...)
	each := float64(settledMemory(b, s.Rig)-before) / float64(len(ends))
	b.ReportMetric(each/1024, "KiB/member")
	b.ReportMetric(float64(alone)/(1<<20), "relay-without-members-MiB")

	report := func(name string, took []float64) {
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2], "apply-"+name+"-ms")
		b.ReportMetric(took[len(took)-1], "apply-"+name+"-most-ms")
	}
	others := watchOthers(b, s.PID())
	var idle, loaded []float64
	for range networkPushes {
		for i := range s.network.Nodes {
			s.network.Nodes[i].ExpiresAt++
		}
		idle = append(idle, ms(s.push(b)))
	}
	report("idle", idle)

	l := &lane{pid: s.PID()}
	for i := range swapFlows {
		from, to := ends[2*i], ends[2*i+1]
		packet := ipv4Packet(workload(2*i), workload(2*i+1), 1280)
		grow(b, packet, from, to, func() bool { return to.pathSize.Load() >= 1280 })
		l.flows = append(l.flows, newFlow(from, to, packet))
	}
	var stop atomic.Bool
	begun := time.Now()
	wait := l.begin(swapWindow, stop.Load)
	sent, passed := swapAmongPackets(b, s, ends, &loaded)
	stop.Store(true)
	wait()
	b.ReportMetric(float64(l.arrived())/time.Since(begun).Seconds(), "granted-packets/s")
	b.ReportMetric(float64(l.drained()), "granted-lost")
	report("loaded", loaded)
	b.ReportMetric(float64(sent), "forbidden-sent-after-idle")
	b.ReportMetric(float64(passed), "forbidden-passed")
	b.ReportMetric(float64(s.applying), "answered-applying")
	b.ReportMetric(others(), "other-cores")
	b.ReportMetric(0, "ns/op")
}

// swapAmongPackets pushes revisions of which every other one forbids a flow that goes on
// sending. It returns how many packets of it were sent when that was effective, and how
// many of these came through.
func swapAmongPackets(b *testing.B, s *hubStage, ends []*end, took *[]float64) (sent, passed int) {
	came := collect(ends[barredTo])
	number, stop := press(ends[barredFrom])
	defer stop()
	granting := s.network.Grants
	source := s.network.Nodes[barredFrom].WorkloadPrefixes[0].PolicyDomain
	destination := s.network.Nodes[barredTo].WorkloadPrefixes[0].PolicyDomain
	barring := slices.DeleteFunc(slices.Clone(granting), func(g contract.VPNGrant) bool {
		return g.SourceDomain == source && g.DestinationDomain == destination
	})
	type span struct{ from, to uint32 }
	var forbidden []span
	for i := range networkPushes {
		s.network.Grants = granting
		if i%2 == 0 {
			s.network.Grants = barring
		}
		*took = append(*took, ms(s.push(b)))
		begun := number.Load() + 1 // the packet before may have been sent already
		time.Sleep(forbiddenSpan)
		if i%2 == 0 {
			end := number.Load()
			// What the hub has not judged yet is judged by this network, not by the next.
			time.Sleep(forbiddenSpan)
			forbidden = append(forbidden, span{begun, end})
		}
	}
	stop()
	time.Sleep(drainWait)
	numbers := came()
	if len(numbers) == 0 {
		b.Fatal("nothing of the flow came through, not even when it was granted")
	}
	for _, of := range forbidden {
		sent += max(0, int(of.to)-int(of.from))
		for _, n := range numbers {
			if n >= of.from && n < of.to {
				passed++
			}
		}
	}
	return sent, passed
}

// collect keeps the numbers of all packets that come to an end.
func collect(to *end) (came func() []uint32) {
	var mu sync.Mutex
	var numbers []uint32
	take := func(packet []byte) {
		mu.Lock()
		defer mu.Unlock()
		if len(packet) >= numberAt+4 {
			numbers = append(numbers, binary.BigEndian.Uint32(packet[numberAt:]))
		}
	}
	to.take.Store(&take)
	return func() []uint32 { mu.Lock(); defer mu.Unlock(); return numbers }
}

// press sends packets of the flow that revisions forbid, whether it is granted or not,
// until it is stopped. number is that of the packet which is sent next.
func press(from *end) (number *atomic.Uint32, stop func()) {
	number = new(atomic.Uint32)
	var over atomic.Bool
	var running sync.WaitGroup
	packet := ipv4Packet(workload(barredFrom), workload(barredTo), 1000)
	running.Go(func() {
		for ; !over.Load(); time.Sleep(barredPace) {
			binary.BigEndian.PutUint32(packet[numberAt:], number.Load())
			from.conn.SendDatagram(packet)
			number.Add(1)
		}
	})
	return number, func() { over.Store(true); running.Wait() }
}
