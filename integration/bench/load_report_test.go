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
	refused  int             // batches
	cpu      time.Duration   // of what was measured
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

// insideOf picks a percentile of the time inside: the most it can be.
func insideOf(percent float64, answer bool) func(round) float64 {
	return func(r round) float64 {
		_, most, back := r.insideAt(percent)
		if answer {
			return back
		}
		return most
	}
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
	fmt.Fprintf(&text, "%d nodes; the relay, or a TCP proxy, and this driver share %d cores; medians of %d rounds of %s; ms\n",
		loadNodes, runtime.NumCPU(), loadRounds, openSpan)
	fmt.Fprintf(&text, "closed loop, one request in flight a node: C = %.0f/s through the relay (%.0f µs of its CPU each), %.0f/s through the proxy (%.0f µs); open loop at %.0f/s\n",
		c, median(s.relayFull), median(s.proxyRates), median(s.proxyFull), loadShare*c)
	for i := range scenarios {
		i := i
		fmt.Fprintf(&text, "%s: p50 %.2f, proxy %.2f, added %.2f; p99 %.2f, proxy %.2f, added %.2f; inside p50 %.3f + %.3f, p99 %.2f + %.2f; CPU a request %.0f µs, proxy %.0f\n", i,
			s.over(i, relayAt(50)), s.over(i, proxyAt(50)), s.over(i, addedAt(50)),
			s.over(i, relayAt(99)), s.over(i, proxyAt(99)), s.over(i, addedAt(99)),
			s.over(i, insideOf(50, false)), s.over(i, insideOf(50, true)), s.over(i, insideOf(99, false)), s.over(i, insideOf(99, true)),
			s.over(i, relayCPU), s.over(i, proxyCPU))
	}
	fmt.Fprintf(&text, "the flood, %.0f MiB/s (proxy %.0f), adds to the others' p99: inside %.2f + %.2f, end to end %.2f (proxy %.2f)\n",
		s.over(flood, relayFloods), s.over(flood, proxyFloods),
		s.beyond(flood, insideOf(99, false)), s.beyond(flood, insideOf(99, true)), s.beyond(flood, relayAt(99)), s.beyond(flood, proxyAt(99)))
	fmt.Fprintf(&text, "the mute node: %.0f answers and %.0f pushes not taken, the relay %.1f MiB larger\n",
		s.over(mute, undelivered), s.over(mute, overloaded), s.over(mute, grown))
	fmt.Fprintf(&text, "memory of an idle node %.1f KiB; start to registered %.0f ms (%.0f at most)", s.memory/1024, median(s.starts), slices.Max(s.starts))
	s.results(b, text.String())
}

func undelivered(r round) float64 { return r.undelivered }
func overloaded(r round) float64  { return r.overloaded }
func grown(r round) float64       { return float64(r.relay.memory) / (1 << 20) }

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
			{"inside-request-p50-ms", s.over(i, insideOf(50, false))}, {"inside-request-p99-ms", s.over(i, insideOf(99, false))},
			{"inside-answer-p50-ms", s.over(i, insideOf(50, true))}, {"inside-answer-p99-ms", s.over(i, insideOf(99, true))},
			{"cores", s.over(i, relayCores)},
		}
		if i == quiet {
			figures = append(figures, figure{"cpu-µs/request", s.over(i, relayCPU)}, figure{"proxy-cpu-µs/request", s.over(i, proxyCPU)})
		}
		if i == flood {
			least := func(r round) float64 { low, _, _ := r.insideAt(99); return low }
			figures = append(figures, figure{"flood-MiB/s", s.over(i, relayFloods)}, figure{"proxy-flood-MiB/s", s.over(i, proxyFloods)},
				figure{"inside-request-p99-at-least-ms", s.over(i, least)},
				figure{"flood-adds-inside-request-p99-ms", s.beyond(i, insideOf(99, false))}, figure{"flood-adds-inside-answer-p99-ms", s.beyond(i, insideOf(99, true))},
				figure{"flood-adds-p99-ms", s.beyond(i, relayAt(99))}, figure{"flood-adds-proxy-p99-ms", s.beyond(i, proxyAt(99))})
		}
		if i == mute {
			figures = append(figures, figure{"undelivered-answers", s.over(i, undelivered)}, figure{"refused-pushes", s.over(i, overloaded)}, figure{"grown-MiB", s.over(i, grown)})
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
