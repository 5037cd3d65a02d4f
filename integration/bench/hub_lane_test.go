package bench

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

// The datagram lane against the bare relay.
const (
	laneRounds = 5
	laneWarm   = 500 * time.Millisecond
	// laneSlice is how long each runs in its turn, and laneSlices how often in a round:
	// both see the same noise.
	laneSlice, laneSlices = 250 * time.Millisecond, 4
	// windowAlone is how many packets are under way in one pair alone: as many as fit
	// into QUIC's queue of received datagrams. windowOfMany is that of each of 8 pairs.
	windowAlone, windowOfMany = 120, 64
)

// laneCases are what the budget is for (design §11).
var laneCases = []struct{ size, pairs, window int }{
	{1200, 1, windowAlone}, {1280, 1, windowAlone}, {1200, 8, windowOfMany}, {1280, 8, windowOfMany},
}

// BenchmarkHubLane drives the built relay and a bare relay of QUIC datagrams in turn, in
// a closed loop, and prints what a packet costs each.
func BenchmarkHubLane(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(driverGC))
	for _, c := range laneCases {
		b.Run(fmt.Sprintf("%dB-%dpairs", c.size, c.pairs), func(b *testing.B) {
			stage := newHubStage(b, pairedNetwork(c.pairs))
			all := []*lane{
				ourLane: hubLane(b, stage, c.pairs, c.size), plainLane: bareLane(b, bareRole, c.pairs, c.size),
				reservedLane: bareLane(b, reservedRole, c.pairs, c.size),
			}
			for b.Loop() {
				compareLanes(b, all, c.window)
			}
		})
	}
}

// The relays of a comparison.
const (
	ourLane      = iota
	plainLane    // the bare relay
	reservedLane // the bare relay that collects garbage as rarely as ours
)

// compareLanes measures all in turn and prints the medians, and those of the ratios.
func compareLanes(b *testing.B, all []*lane, window int) {
	var pids []int
	for _, l := range all {
		l.run(b, laneWarm, window)
		pids = append(pids, l.pid)
	}
	others := watchOthers(b, pids...)
	rounds := make([][]carried, len(all))
	for range laneRounds {
		sum := make([]carried, len(all))
		for slice := range laneSlices {
			for k := range all {
				i := (k + slice) % len(all) // none always comes first
				sum[i] = sum[i].plus(all[i].run(b, laneSlice, window))
			}
		}
		for i := range all {
			rounds[i] = append(rounds[i], sum[i])
		}
	}
	busy := others()
	cpu := ratios(rounds[ourLane], rounds[plainLane], carried.each)
	b.ReportMetric(median(cpu), "cpu-ratio")
	b.ReportMetric(slices.Min(cpu), "cpu-ratio-least")
	b.ReportMetric(slices.Max(cpu), "cpu-ratio-most")
	b.ReportMetric(median(ratios(rounds[ourLane], rounds[reservedLane], carried.each)), "cpu-ratio-to-reserved")
	b.ReportMetric(median(ratios(rounds[ourLane], rounds[plainLane], carried.rate)), "rate-ratio")
	for i, who := range []string{ourLane: "our", plainLane: "bare", reservedLane: "reserved"} {
		b.ReportMetric(medianOf(rounds[i], carried.each), who+"-cpu-ns/packet")
		b.ReportMetric(medianOf(rounds[i], carried.rate), who+"-packets/s")
		b.ReportMetric(all[i].allocations(b, laneWarm, window), who+"-allocs/packet")
		b.ReportMetric(medianOf(rounds[i], carried.lostShare), who+"-lost-%")
	}
	b.ReportMetric(busy, "other-cores")
	b.ReportMetric(0, "ns/op")
}

func medianOf(all []carried, what func(carried) float64) float64 {
	var values []float64
	for _, c := range all {
		values = append(values, what(c))
	}
	return median(values)
}

// ratios are those of the first relay's rounds to the second's.
func ratios(first, second []carried, what func(carried) float64) (all []float64) {
	for i := range first {
		all = append(all, what(first[i])/what(second[i]))
	}
	return all
}
