package bench

import (
	"errors"
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
	loadRounds = 5
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
	yieldCores(b)
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
			rate, each := f.saturate(b)
			if f == l.relay {
				s.relayRates, s.relayFull = append(s.relayRates, rate), append(s.relayFull, each)
			} else {
				s.proxyRates, s.proxyFull = append(s.proxyRates, rate), append(s.proxyFull, each)
			}
		}
	}
}

// saturate returns how many requests a second all nodes of a fleet get through,
// and the CPU of what is measured for each, in µs.
func (f *fleet) saturate(b *testing.B) (rate, each float64) {
	last, err := f.dial(loadNodes-1, 0)
	if err != nil {
		b.Fatal(err)
	}
	nodes := append(slices.Clone(f.crowd), last)
	defer last.conn.CloseNow()
	counts, failures := make([]int, len(nodes)), make([]error, len(nodes))
	defer watch(nodes, closedSpan)()
	cpu, begin := cpuOf(b, f.pid), time.Now()
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { counts[i], failures[i] = n.closedLoop(begin.Add(closedSpan)) })
	}
	wg.Wait()
	took, used := time.Since(begin), cpuOf(b, f.pid)-cpu
	if err := errors.Join(failures...); err != nil {
		b.Fatal(err)
	}
	sum := 0
	for _, count := range counts {
		sum += count
	}
	return float64(sum) / took.Seconds(), float64(used) / 1e3 / float64(sum)
}

// watch ends the sockets of all nodes when a run does not end by itself.
func watch(nodes []*node, span time.Duration) (stop func()) {
	timer := time.AfterFunc(span+lateWait, func() {
		for _, n := range nodes {
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
	defer last.conn.CloseNow()
	defer watch(append(slices.Clone(f.crowd), last), lead+openSpan)()
	memory := residentOf(b, f.pid)
	cpu, waited := scheduled(b, f.pid)
	begin := time.Now().Add(lead)
	crowd, beside := f.openLoops(begin, due), l.beside(last, i, begin, due[loadNodes-1])
	got := <-crowd
	x.cpu, x.waited = scheduled(b, f.pid)
	x.cpu, x.waited, x.span = x.cpu-cpu, x.waited-waited, time.Since(begin)
	x.memory = residentOf(b, f.pid) - memory
	if i == mute {
		last.conn.CloseNow() // what it does not read is on its way for ever
	}
	also := <-beside
	if err := errors.Join(got.err, also.err); err != nil {
		b.Fatal(err)
	}
	if got.failed+also.failed > 0 {
		b.Errorf("%s, %s: %d reports and %d batches were refused", f.prefix, i, got.failed, also.failed)
	}
	if len(got.took) == 0 {
		b.Fatalf("a rate of %.0f/s is too low to measure", l.rate)
	}
	slices.Sort(got.took)
	x.took, x.batches, x.requests = got.took, also.batches, len(got.took)+also.requests
	return x
}

// outcome is what became of the requests of some nodes.
type outcome struct {
	took     []time.Duration // of reports
	requests int             // of every kind
	batches  int             // answered in time
	failed   int
	err      error
}

// openLoops has every node of the crowd send its reports.
func (f *fleet) openLoops(begin time.Time, due [][]time.Duration) <-chan outcome {
	all := make([]outcome, len(f.crowd))
	var wg sync.WaitGroup
	for k, n := range f.crowd {
		wg.Go(func() { all[k].took, all[k].failed, all[k].err = n.openLoop(begin, due[k]) })
	}
	done := make(chan outcome, 1)
	go func() {
		wg.Wait()
		var sum outcome
		for _, o := range all {
			sum.took, sum.failed, sum.err = append(sum.took, o.took...), sum.failed+o.failed, errors.Join(sum.err, o.err)
		}
		done <- sum
	}()
	return done
}

// beside has the last node do what the scenario says.
func (l *load) beside(last *node, i scenario, begin time.Time, due []time.Duration) <-chan outcome {
	until := begin.Add(openSpan)
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		switch i {
		case quiet:
			o.took, o.failed, o.err = last.openLoop(begin, due)
			o.requests = len(o.took)
		case flood:
			o.batches, o.failed, o.err = last.flood(begin, until)
			o.requests = o.batches
		case mute:
			pushed := make(chan struct{})
			go func() {
				defer close(pushed)
				l.sink.push(last.id, pushSize, pushEvery, until)
			}()
			o.requests = last.ask(begin, until)
			<-pushed
		}
		done <- o
	}()
	return done
}
