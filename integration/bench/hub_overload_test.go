package bench

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

const (
	overloadRounds = 5
	// overloadSlice is how long each runs in its turn, and overloadSlices how often in a
	// round.
	overloadSlice, overloadSlices = 500 * time.Millisecond, 2
)

// BenchmarkHubOverload compares what arrives when all senders send as fast as they can
// with what arrives when they wait, through the built relay and through the bare one.
func BenchmarkHubOverload(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(driverGC))
	for _, c := range laneCases {
		if c.size != 1280 {
			continue
		}
		b.Run(fmt.Sprintf("%dB-%dpairs", c.size, c.pairs), func(b *testing.B) {
			stage := newHubStage(b, pairedNetwork(c.pairs))
			ours, bare := hubLane(b, stage, c.pairs, c.size), bareLane(b, bareRole, c.pairs, c.size)
			for b.Loop() {
				overload(b, stage, ours, bare, c.window)
			}
		})
	}
}

// overload measures both in turn and prints medians.
func overload(b *testing.B, stage *hubStage, ours, bare *lane, window int) {
	both := [2]*lane{ours, bare}
	for _, l := range both {
		l.run(b, laneWarm, window)
	}
	others := watchOthers(b, ours.pid, bare.pid)
	var closed, open [2][]carried
	var lost losses
	var handed []float64 // on, of what arrived in the closed loop
	for range overloadRounds {
		var waiting, pressing [2]carried
		var relayed float64
		for range overloadSlices {
			for i, l := range both {
				waiting[i] = waiting[i].plus(l.run(b, overloadSlice, window))
				before := stage.losses()
				pressing[i] = pressing[i].plus(l.run(b, overloadSlice, 0))
				if l == ours {
					here := stage.losses().minus(before)
					lost, relayed = lost.plus(here), relayed+here.relayed
				}
			}
		}
		handed = append(handed, relayed/pressing[0].took.Seconds()/waiting[0].rate())
		for i := range both {
			closed[i], open[i] = append(closed[i], waiting[i]), append(open[i], pressing[i])
		}
	}
	b.ReportMetric(others(), "other-cores")
	for i, who := range []string{"our", "bare"} {
		kept := ratios(open[i], closed[i], carried.rate)
		b.ReportMetric(median(kept), who+"-goodput-ratio")
		b.ReportMetric(slices.Min(kept), who+"-goodput-ratio-least")
		b.ReportMetric(medianOf(closed[i], carried.rate), who+"-closed-packets/s")
		b.ReportMetric(medianOf(open[i], carried.rate), who+"-open-packets/s")
		b.ReportMetric(medianOf(open[i], carried.lostShare), who+"-open-lost-%")
		b.ReportMetric(medianOf(open[i], carried.each), who+"-open-cpu-ns/packet")
	}
	// The ends are starved too: what the hub has handed on and they have not taken is no
	// loss of the hub's.
	b.ReportMetric(median(handed), "our-handed-on-ratio")
	// Where our packets were lost, in shares of those that were sent.
	var sent float64
	for _, c := range open[0] {
		sent += float64(c.arrived + c.lost)
	}
	b.ReportMetric(100*lost.kernel/sent, "our-lost-in-kernel-%")
	b.ReportMetric(100*lost.queue/sent, "our-lost-in-queues-%")
	b.ReportMetric(100*(sent-lost.received-lost.kernel)/sent, "our-lost-before-reader-%")
	b.ReportMetric(0, "ns/op")
}

// losses are what the hub says of where packets ended, or sums of it.
type losses struct {
	received float64 // datagrams that its reader took
	relayed  float64 // packets that were handed to the tunnels of others
	kernel   float64 // dropped by the kernel at its socket
	queue    float64 // dropped since the destination's queue was full
}

func (l losses) plus(m losses) losses {
	return losses{l.received + m.received, l.relayed + m.relayed, l.kernel + m.kernel, l.queue + m.queue}
}

func (l losses) minus(m losses) losses {
	return losses{l.received - m.received, l.relayed - m.relayed, l.kernel - m.kernel, l.queue - m.queue}
}

// losses asks the hub. It looks at its socket once a second by itself, and whenever its
// status is shown.
func (s *hubStage) losses() losses {
	s.Status()
	m := s.Metrics()
	received, _ := m.Sum("relay_hub_received_datagrams_total")
	relayed, _ := m.Value("relay_hub_relayed_packets_total")
	kernel, _ := m.Value("relay_hub_socket_dropped_packets_total")
	queue, _ := m.Value("relay_hub_dropped_packets_total", "reason", "queue-full")
	return losses{received, relayed, kernel, queue}
}
