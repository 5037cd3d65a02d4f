package hub

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
)

// BenchmarkApply pushes successors of the largest networks to a hub with members that
// are connected, and prints where the time goes from the push to the answer: reading,
// compiling, and the swap, which is the rest: admission, the atomic store, the barrier
// and the answer.
//
//	go test -run '^$' -bench Apply -benchtime 50x ./hub
func BenchmarkApply(b *testing.B) {
	for _, largest := range largestNetworks {
		for _, traffic := range []bool{false, true} {
			name := largest.name + "-idle"
			if traffic {
				name = largest.name + "-traffic"
			}
			b.Run(name, func(b *testing.B) { benchmarkApply(b, keyed(largest.make()), traffic) })
		}
	}
}

func benchmarkApply(b *testing.B, x contract.VPNNetwork, traffic bool) {
	r := newLoopbackRig(b)
	var read, compiled time.Time
	compile := r.compile
	r.compile = func(prev *policy.Table, next contract.VPNNetwork, at network.Instant) (*policy.Table, error) {
		read = time.Now()
		defer func() { compiled = time.Now() }()
		return compile(prev, next, at)
	}
	c := r.cloudly()
	c.must(renewed(x, 1))
	nodes := []*node{r.dial(0), r.dial(1), r.dial(4), r.dial(5)}
	if traffic {
		defer closedLoop(nodes[0], nodes[1], 0, 1)()
		defer r.press(nodes[2], 4, 5)()
	}
	var reading, compiling, swapping []float64
	late := 0 // answered applying
	revision := int64(1)
	for b.Loop() {
		revision++
		next := renewed(x, revision)
		if revision%2 == 0 { // so that something is forbidden
			next = barred(next, revision, 4, 5)
		}
		body := contract.ApplyVPNNetworkRequest{Network: next}.AppendJSON(nil)
		begun := time.Now()
		answered, err := c.ask(body)
		swapped := time.Now()
		if err != nil {
			b.Fatal(err)
		}
		if answer, err := contract.ReadApplyVPNNetworkAnswer([]byte(answered)); err != nil || answer.State != contract.VPNNetworkIdle {
			late++
			until(b, "an idle hub", func() bool { return r.status().Network.State == string(contract.VPNNetworkIdle) })
		}
		reading = append(reading, ms(read.Sub(begun)))
		compiling = append(compiling, ms(compiled.Sub(read)))
		swapping = append(swapping, ms(swapped.Sub(compiled)))
	}
	for _, part := range []struct {
		name  string
		times []float64
	}{{"reading", reading}, {"compiling", compiling}, {"swap", swapping}} {
		slices.Sort(part.times)
		b.ReportMetric(part.times[len(part.times)/2], part.name+"-ms")
		b.ReportMetric(part.times[len(part.times)-1], part.name+"-most-ms")
	}
	b.ReportMetric(float64(late), "answered-applying")
	b.ReportMetric(0, "ns/op")
}

// press sends packets from one node to another, whether they are granted or not, with
// few that the hub has not judged, until it is stopped.
func (r *rig) press(from *node, source, destination int) (stop func()) {
	judged := r.judged(source)
	var end atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for sent := judged.Load(); !end.Load(); sent++ {
			for sent-judged.Load() >= fewUnderWay && !end.Load() {
				time.Sleep(50 * time.Microsecond)
			}
			from.send(packetOf(ip(source), ip(destination), 1000, int(sent)))
		}
	}()
	return func() { end.Store(true); <-ended }
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
