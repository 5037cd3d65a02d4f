package bench

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/integration/rig"
)

const (
	loadNodes  = 256
	loadShare  = 0.3 // of the rate that saturates the machine
	loadRounds = 7
	loadStarts = 5

	// closedSpan and openSpan are how long one run of each kind lasts. Many short
	// runs in turn see the same noise on both sides.
	closedSpan = 1200 * time.Millisecond
	openSpan   = time.Second
	// lead is how long before its begin a run is set up.
	lead = 50 * time.Millisecond

	// driverGC makes the driver collect garbage less often: its pauses are nobody's
	// latency.
	driverGC = 400
)

// scenario is what the last of the 256 nodes does while the others send reports
// in an open loop.
type scenario int

const (
	quiet scenario = iota // as the others
	flood                 // batches back to back
	mute                  // it reads nothing and is sent much
	scenarios
)

func (s scenario) String() string { return [scenarios]string{"quiet", "flood", "mute"}[s] }

// load is the stage: a relay and a proxy in processes of their own, and in this
// one Cloudly's end and 256 nodes behind each.
type load struct {
	rig          *rig.Rig
	sink         *sink
	relay, proxy *fleet
	rate         float64 // of the open loop, requests in a second of all nodes
}

// BenchmarkLoad drives the built relay with 256 nodes, and in turn a plain TCP
// proxy with as many, which then speak with Cloudly's end themselves. It measures
// starts, memory, the rate C at which nodes with one request in flight each
// saturate the machine, and latency in an open loop at 0.3 C, for each scenario.
func BenchmarkLoad(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(driverGC))
	l := &load{rig: newRig(b)}
	l.sink = newSink(b, l.rig)
	var s summary
	s.starts = l.start(b)
	s.memory = l.fill(b)
	l.closed(b, &s)
	l.rate = loadShare * median(s.relayRates)
	others := watchOthers(b, l.relay.pid, l.proxy.pid)
	for round := range loadRounds {
		for i := range scenarios {
			l.round(b, &s, i, uint64(round))
		}
	}
	s.others = others()
	s.report(b)
}

// start starts the relay some times, and returns how long each took to the
// registration that Cloudly accepted. The last one stays.
func (l *load) start(b *testing.B) (took []float64) {
	for i := range loadStarts {
		if i > 0 {
			l.rig.Kill()
		}
		l.sink.forgetRegistrations()
		begin := time.Now()
		l.rig.Start()
		took = append(took, ms(l.sink.waitRegistered(b).Sub(begin)))
	}
	l.rig.WaitReady()
	return took
}

// fill connects all nodes and returns what one behind the relay costs it, in bytes.
func (l *load) fill(b *testing.B) float64 {
	l.relay = &fleet{address: l.rig.ListenAddress(), pid: l.rig.PID(), tls: l.rig.ClientTLS(), prefix: "node"}
	proxy := start(b, proxyRole, l.sink.address)
	l.proxy = &fleet{address: proxy.address, pid: proxy.cmd.Process.Pid, tls: l.rig.ClientTLS(), prefix: "direct"}
	// What the first node makes the relay allocate is not the node's own.
	first, err := l.relay.dial(loadNodes-1, 0)
	if err != nil {
		b.Fatal(err)
	}
	first.conn.CloseNow()
	before := settledMemory(b, l.rig)
	l.relay.dialCrowd(b)
	each := float64(settledMemory(b, l.rig)-before) / float64(len(l.relay.crowd))
	l.proxy.dialCrowd(b)
	return each
}

// closed finds the rates at which one request in flight a node saturates the
// machine.
func (l *load) closed(b *testing.B, s *summary) {
	for range 3 {
		for _, f := range []*fleet{l.proxy, l.relay} {
			counts, failures := make([]int, len(f.crowd)), make([]error, len(f.crowd))
			stop := f.watch(closedSpan)
			cpu, begin := cpuOf(b, f.pid), time.Now()
			var wg sync.WaitGroup
			for i, n := range f.crowd {
				wg.Go(func() { counts[i], failures[i] = n.closedLoop(begin.Add(closedSpan)) })
			}
			wg.Wait()
			took := time.Since(begin)
			stop()
			sum := 0
			for i := range counts {
				if sum += counts[i]; failures[i] != nil {
					b.Fatal(failures[i])
				}
			}
			each := float64(cpuOf(b, f.pid)-cpu) / 1e3 / float64(sum)
			if f == l.relay {
				s.relayRates, s.relayFull = append(s.relayRates, float64(sum)/took.Seconds()), append(s.relayFull, each)
			} else {
				s.proxyRates, s.proxyFull = append(s.proxyRates, float64(sum)/took.Seconds()), append(s.proxyFull, each)
			}
		}
	}
}

// watch ends all sockets of a fleet when a run does not end by itself.
func (f *fleet) watch(span time.Duration) (stop func()) {
	timer := time.AfterFunc(span+lateWait, func() {
		for _, n := range f.crowd {
			n.conn.CloseNow()
		}
	})
	return func() { timer.Stop() }
}

// schedules are the times at which each node sends, counted from the begin of a
// run: as many independent sources would, at a rate of all together.
func schedules(rate float64, span time.Duration, seed uint64) [][]time.Duration {
	all := make([][]time.Duration, loadNodes)
	for i := range all {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		gap := func() time.Duration {
			return time.Duration(random.ExpFloat64() * loadNodes / rate * float64(time.Second))
		}
		for at := gap(); at < span; at += gap() {
			all[i] = append(all[i], at)
		}
	}
	return all
}

// round measures one scenario through the proxy and through the relay, one right
// after the other and under one schedule.
func (l *load) round(b *testing.B, s *summary, i scenario, seed uint64) {
	due := schedules(l.rate, openSpan, seed)
	through := [2]*fleet{l.proxy, l.relay}
	if seed%2 == 1 { // neither always comes first
		slices.Reverse(through[:])
	}
	var r round
	for _, f := range through {
		if f == l.proxy {
			r.proxy = l.run(b, f, i, due)
		} else {
			before, asked := l.scrape(b), l.sink.refused.Load()
			r.relay = l.run(b, f, i, due)
			after := l.scrape(b)
			r.inside = after.inside.minus(before.inside)
			r.undelivered, r.overloaded = after.undelivered-before.undelivered, float64(l.sink.refused.Load()-asked)
		}
	}
	s.rounds[i] = append(s.rounds[i], r)
}

// scraped is what /metrics says that is of interest here.
type scraped struct {
	inside      inside
	undelivered float64 // answers that a node did not take
}

func (l *load) scrape(b *testing.B) (x scraped) {
	b.Helper()
	page := l.rig.Get("/metrics")
	var err error
	if x.inside, err = readInside(page.Body); err != nil {
		b.Fatal(err)
	}
	m, err := rig.ParseMetrics(string(page.Body))
	if err != nil {
		b.Fatal(err)
	}
	x.undelivered, _ = m.Sum("relay_forward_carried_requests_total", "outcome", "undelivered")
	return x
}

// run is one run of a scenario through one fleet.
func (l *load) run(b *testing.B, f *fleet, i scenario, due [][]time.Duration) (x measured) {
	buffer := 0
	if i == mute {
		buffer = muteBuffer
	}
	last, err := f.dial(loadNodes-1, buffer)
	if err != nil {
		b.Fatal(err)
	}
	memory := residentOf(b, f.pid)
	cpu, begin := cpuOf(b, f.pid), time.Now().Add(lead)
	until := begin.Add(openSpan)
	stop := f.watch(lead + openSpan)
	endLast := time.AfterFunc(lead+openSpan+lateWait, func() { last.conn.CloseNow() })
	took, failures := make([][]time.Duration, len(f.crowd)), make([]error, len(f.crowd))
	refused := make([]int, len(f.crowd))
	var crowd, beside sync.WaitGroup
	for k, n := range f.crowd {
		crowd.Go(func() { took[k], refused[k], failures[k] = n.openLoop(begin, due[k]) })
	}
	var lastErr error
	switch i {
	case quiet:
		beside.Go(func() { _, _, lastErr = last.openLoop(begin, due[loadNodes-1]) })
	case flood:
		beside.Go(func() { x.batches, x.refused, lastErr = last.flood(begin, until) })
	case mute:
		beside.Go(func() { x.asked = last.ask(begin, until) })
		beside.Go(func() { l.sink.push(last.id, pushSize, pushEvery, until) })
	}
	crowd.Wait()
	stop()
	x.cpu = cpuOf(b, f.pid) - cpu
	x.span = time.Since(begin)
	x.memory = residentOf(b, f.pid) - memory
	if i == mute {
		last.conn.CloseNow() // what it was sent and did not read is on its way for ever
	}
	beside.Wait()
	endLast.Stop()
	last.conn.CloseNow()
	for k := range f.crowd {
		if failures[k] != nil {
			b.Fatal(failures[k])
		}
		if refused[k] > 0 {
			b.Errorf("%s, %s: %d reports of %s were refused", f.prefix, i, refused[k], f.crowd[k].id)
		}
		x.took = append(x.took, took[k]...)
	}
	if lastErr != nil {
		b.Fatal(lastErr)
	}
	if x.refused > 0 {
		b.Errorf("%s: %d batches were refused", f.prefix, x.refused)
	}
	slices.Sort(x.took)
	x.requests = len(x.took) + x.batches + x.asked
	if i == quiet {
		x.requests += len(due[loadNodes-1])
	}
	if len(x.took) == 0 {
		b.Fatal(fmt.Errorf("a rate of %.0f/s is too low to measure", l.rate))
	}
	return x
}
