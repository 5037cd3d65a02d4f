package bench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// measured is one run through one fleet.
type measured struct {
	took     []time.Duration // end to end, of all nodes but the last one, sorted
	requests int             // of all nodes
	batches  int             // of the flooding node, answered within the run
	cpu      time.Duration   // of what was measured
	waited   time.Duration   // for which threads of it were ready to run and had no core
	span     time.Duration
	memory   int // by which what was measured grew, in bytes
}

// cores is how many cores the process had busy.
func (x measured) cores() float64 { return x.cpu.Seconds() / x.span.Seconds() }

// round is one scenario through both, one right after the other.
type round struct {
	relay, proxy measured
	inside       inside
	// undelivered are answers that the node which does not read did not take, and
	// overloaded pushes to it that the relay refused.
	undelivered, overloaded float64
}

// added is what the relay costs in latency over the proxy.
func (r round) added(percent int) float64 {
	return ms(at(r.relay.took, percent) - at(r.proxy.took, percent))
}

// insideAt is between which two times, in milliseconds, a percentile lies of what
// reports spent inside, and of what answers did. Batches are among the requests;
// of them is known only how many there were.
func (r round) insideAt(percent float64) (least, most, answer float64) {
	low, high := r.inside.request.without(float64(r.relay.batches), percent)
	return ms(low), ms(high), ms(r.inside.answer.at(r.inside.answer.count() * percent / 100))
}

// summary is everything that a load has shown.
type summary struct {
	starts                 []float64 // ms
	memory                 float64   // bytes a node
	relayRates, proxyRates []float64 // closed loop, requests in a second
	relayFull, proxyFull   []float64 // CPU a request there, µs
	rounds                 [scenarios][]round
	others                 float64 // cores that other processes had busy meanwhile
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// over is the median over the rounds of a scenario.
func (s *summary) over(i scenario, of func(round) float64) float64 {
	var all []float64
	for _, r := range s.rounds[i] {
		all = append(all, of(r))
	}
	return median(all)
}

// beyond is the median over the rounds of what a scenario adds to the quiet round
// of the same number.
func (s *summary) beyond(i scenario, of func(round) float64) float64 {
	var all []float64
	for k, r := range s.rounds[i] {
		all = append(all, of(r)-of(s.rounds[quiet][k]))
	}
	return median(all)
}

func insideLeast(percent float64) func(round) float64 {
	return func(r round) float64 { least, _, _ := r.insideAt(percent); return least }
}

func insideMost(percent float64) func(round) float64 {
	return func(r round) float64 { _, most, _ := r.insideAt(percent); return most }
}

func insideAnswer(percent float64) func(round) float64 {
	return func(r round) float64 { _, _, answer := r.insideAt(percent); return answer }
}

func relayAt(percent int) func(round) float64 {
	return func(r round) float64 { return ms(at(r.relay.took, percent)) }
}

func proxyAt(percent int) func(round) float64 {
	return func(r round) float64 { return ms(at(r.proxy.took, percent)) }
}

func addedAt(percent int) func(round) float64 {
	return func(r round) float64 { return r.added(percent) }
}

func relayCPU(r round) float64   { return r.relay.cpu.Seconds() * 1e6 / float64(r.relay.requests) }
func proxyCPU(r round) float64   { return r.proxy.cpu.Seconds() * 1e6 / float64(r.proxy.requests) }
func relayCores(r round) float64 { return r.relay.cores() }
func proxyCores(r round) float64 { return r.proxy.cores() }
func relayWaits(r round) float64 { return r.relay.waited.Seconds() / r.relay.span.Seconds() }
func relayFloods(r round) float64 {
	return float64(r.relay.batches) * batchSize / (1 << 20) / openSpan.Seconds()
}
func proxyFloods(r round) float64 {
	return float64(r.proxy.batches) * batchSize / (1 << 20) / openSpan.Seconds()
}

// report prints the summary and, as results of sub-benchmarks, its figures.
func (s *summary) report(b *testing.B) {
	c := median(s.relayRates)
	var text strings.Builder
	// testing shows ten lines of a benchmark's log.
	fmt.Fprintf(&text, "%d nodes; relay or TCP proxy, and this driver, share %d cores, of which other work took %.1f; medians of %d rounds of %s; times in ms\n",
		loadNodes, runtime.NumCPU(), s.others, loadRounds, openSpan)
	fmt.Fprintf(&text, "closed loop, one request in flight a node: C = %.0f/s through the relay (%.0f µs of its CPU each), %.0f/s through the proxy (%.0f µs); open loop at %.0f/s\n",
		c, median(s.relayFull), median(s.proxyRates), median(s.proxyFull), loadShare*c)
	for i := range scenarios {
		fmt.Fprintf(&text, "%s: p50 %.2f, proxy %.2f, added %.2f; p99 %.2f, proxy %.2f, added %.2f; inside (request + answer) p50 %.3f + %.3f, p99 %.2f + %.2f; ", i,
			s.over(i, relayAt(50)), s.over(i, proxyAt(50)), s.over(i, addedAt(50)),
			s.over(i, relayAt(99)), s.over(i, proxyAt(99)), s.over(i, addedAt(99)),
			s.over(i, insideMost(50)), s.over(i, insideAnswer(50)), s.over(i, insideMost(99)), s.over(i, insideAnswer(99)))
		if i == flood { // a batch is not a request like the others
			fmt.Fprintf(&text, "CPU %.2f of a second, proxy %.2f", s.over(i, relayCores), s.over(i, proxyCores))
		} else {
			fmt.Fprintf(&text, "CPU a request %.0f µs, proxy %.0f", s.over(i, relayCPU), s.over(i, proxyCPU))
		}
		fmt.Fprintf(&text, "; threads of the relay waited for a core %.2f of a second\n", s.over(i, relayWaits))
	}
	fmt.Fprintf(&text, "the flood, %.0f MiB/s (proxy %.0f), adds to the others' p99: inside %.2f to %.2f + %.2f, end to end %.2f (proxy %.2f)\n",
		s.over(flood, relayFloods), s.over(flood, proxyFloods),
		s.beyond(flood, insideLeast(99)), s.beyond(flood, insideMost(99)), s.beyond(flood, insideAnswer(99)), s.beyond(flood, relayAt(99)), s.beyond(flood, proxyAt(99)))
	fmt.Fprintf(&text, "the mute node: %.0f answers and %.0f pushes not taken, the relay at most %.1f MiB larger\n",
		s.over(mute, undelivered), s.over(mute, overloaded), s.grown())
	fmt.Fprintf(&text, "memory of an idle node %.1f KiB; start to registered %.0f ms (%.0f at most)", s.memory/1024, median(s.starts), slices.Max(s.starts))
	s.results(b, text.String())
}

func undelivered(r round) float64 { return r.undelivered }
func overloaded(r round) float64  { return r.overloaded }

// grown is the most by which the relay grew with a node that does not read, in
// MiB: only the first rounds find it without memory that is free already.
func (s *summary) grown() (most float64) {
	for _, r := range s.rounds[mute] {
		most = max(most, float64(r.relay.memory)/(1<<20))
	}
	return most
}

// figure is one result with its unit.
type figure struct {
	unit  string
	value float64
}

// results shows each figure, and at last the text: of a benchmark that has
// others below it testing shows no log.
func (s *summary) results(b *testing.B, text string) {
	show := func(name string, figures ...figure) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				// All was measured before.
			}
			for _, f := range figures {
				b.ReportMetric(f.value, f.unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
	show("start", figure{"median-ms", median(s.starts)}, figure{"longest-ms", slices.Max(s.starts)})
	show("idle", figure{"KiB/node", s.memory / 1024})
	show("closed", figure{"requests/s", median(s.relayRates)}, figure{"proxy-requests/s", median(s.proxyRates)},
		figure{"cpu-µs/request", median(s.relayFull)}, figure{"proxy-cpu-µs/request", median(s.proxyFull)})
	for i := range scenarios {
		figures := []figure{
			{"p50-ms", s.over(i, relayAt(50))}, {"p99-ms", s.over(i, relayAt(99))},
			{"proxy-p50-ms", s.over(i, proxyAt(50))}, {"proxy-p99-ms", s.over(i, proxyAt(99))},
			{"added-p50-ms", s.over(i, addedAt(50))}, {"added-p99-ms", s.over(i, addedAt(99))},
			{"inside-request-p50-ms", s.over(i, insideMost(50))}, {"inside-request-p99-ms", s.over(i, insideMost(99))},
			{"inside-answer-p50-ms", s.over(i, insideAnswer(50))}, {"inside-answer-p99-ms", s.over(i, insideAnswer(99))},
			{"cores", s.over(i, relayCores)}, {"waiting-for-a-core", s.over(i, relayWaits)},
		}
		if i == quiet {
			figures = append(figures, figure{"cpu-µs/request", s.over(i, relayCPU)}, figure{"proxy-cpu-µs/request", s.over(i, proxyCPU)})
		}
		if i == flood {
			figures = append(figures, figure{"flood-MiB/s", s.over(i, relayFloods)}, figure{"proxy-flood-MiB/s", s.over(i, proxyFloods)},
				figure{"inside-request-p99-at-least-ms", s.over(i, insideLeast(99))},
				figure{"flood-adds-inside-request-p99-at-least-ms", s.beyond(i, insideLeast(99))}, figure{"flood-adds-inside-request-p99-ms", s.beyond(i, insideMost(99))}, figure{"flood-adds-inside-answer-p99-ms", s.beyond(i, insideAnswer(99))},
				figure{"flood-adds-p99-ms", s.beyond(i, relayAt(99))}, figure{"flood-adds-proxy-p99-ms", s.beyond(i, proxyAt(99))})
		}
		if i == mute {
			figures = append(figures, figure{"undelivered-answers", s.over(i, undelivered)}, figure{"refused-pushes", s.over(i, overloaded)}, figure{"grown-MiB", s.grown()})
		}
		show(i.String(), figures...)
	}
	b.Run("summary", func(b *testing.B) {
		for b.Loop() {
			// All was measured before.
		}
		b.Log(text)
		b.ReportMetric(loadShare*median(s.relayRates), "requests/s")
		b.ReportMetric(0, "ns/op")
	})
}
