package soak_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/duty/failpoint/control"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// Variables of the environment.
const (
	// lengthVariable says for how long things happen to the relay, such as 60s. What is
	// before, between and behind it comes on top.
	lengthVariable = "RELAY_SOAK"
	// seedVariable repeats the schedule of a run.
	seedVariable = "RELAY_SOAK_SEED"
	// logVariable names a file for the whole log of the relay, of which a run that failed
	// shows the end alone.
	logVariable = "RELAY_SOAK_LOG"
)

const (
	// shortLength is how long it is where nobody says: the run of a newcomer, and of
	// everybody who runs all tests.
	shortLength = 5 * time.Second
	// lapLength is about how long it is from one quiet point to the next.
	lapLength = 15 * time.Second
	// drainLimit is what a drain may take in all (design §8).
	drainLimit = 10 * time.Second
	// cloudlyRecord bounds what is recorded at Cloudly between two quiet points.
	cloudlyRecord = 128 << 20
)

// soak is a relay with everything around it.
type soak struct {
	*rig.Rig
	t         *testing.T
	random    *rand.Rand
	remote    *control.Remote
	clock     *clock
	fleet     *fleet
	tunnel    *tunnel
	leases    *leases
	edge      *edge
	long      bool
	installed rig.Pair      // the certificate of the origin, if it was replaced
	rhythm    time.Duration // the most that passes between two events
	events    []event       // that happened, in order
	done      []string      // the same, for a person
	broken    map[int]int   // by socket to Cloudly: how often custody ended on it

	mu    sync.Mutex // guards what follows
	found []string
}

// R94, R97: for as long as is asked for, and whatever happens meanwhile, no answer is
// lost or made up, no message is taken twice, no packet passes that no network lets pass,
// each escrow slot is served once, sessions are bound right, nothing leaks, and no secret
// shows. Then SIGTERM under load ends the relay within ten seconds, with 0.
func TestR94_R97_Soak(t *testing.T) {
	t.Parallel()
	length := lengthOf(t)
	s := newSoak(t, fleetSize)
	s.long, s.rhythm = length >= lapLength, 600*time.Millisecond
	first := s.begin()
	deck := newDeck(s.random, s.long)
	for begun := time.Now(); time.Since(begun) < length; {
		rest := s.work()
		for lap := time.Now(); time.Since(lap) < lapLength && time.Since(begun) < length; {
			s.happen(deck.draw())
		}
		rest()
		first.compare(s.quiet("lap"))
	}
	s.wantAllReached()
	s.end()
}

// R94, R97: each thing that a schedule may do is done once, one after the other, so that
// none is left to luck: after it, and at rest, all holds that a soak is held to.
func TestR94_R97_EachThing(t *testing.T) {
	t.Parallel()
	for name, group := range map[string][]event{"session": sessionEvents, "nodes": nodeEvents, "escrow": escrowEvents, "hub": hubEvents,
		"custody": custodyEvents} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSoak(t, smallFleet)
			s.rhythm = 100 * time.Millisecond
			first := s.begin()
			rest := s.work()
			for _, e := range group {
				s.happen(e)
			}
			rest()
			first.compare(s.quiet("each once"))
			s.wantAllReached()
			s.end()
		})
	}
}

// begin warms the relay up, and returns the point that others are compared with.
func (s *soak) begin() *point {
	s.t.Helper()
	rest := s.work()
	s.warm()
	rest()
	return s.quiet("warm")
}

// lengthOf returns how long things are to happen.
func lengthOf(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(lengthVariable)
	if text == "" {
		return shortLength
	}
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		t.Fatalf("%s is %q, want a duration such as 60s", lengthVariable, text)
	}
	return length
}

// newSoak starts everything, with so many nodes.
func newSoak(t *testing.T, nodes int) *soak {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	s := &soak{t: t, random: randomOf(seed), broken: map[int]int{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s=%d has the same schedule", seedVariable, seed)
		}
		t.Logf("this was done: %s", strings.Join(s.done, ", "))
		if name := os.Getenv(logVariable); name != "" && s.Rig != nil {
			if err := os.WriteFile(name, s.Stderr(), 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	t.Logf("seed %d", seed)
	socket := filepath.Join(t.TempDir(), "failpoints")
	var err error
	if s.remote, err = control.Listen(socket); err != nil {
		t.Fatal(err)
	}
	// The program is gone by then: the rig's own end runs before this one.
	t.Cleanup(func() { s.remote.Close() })
	s.clock = &clock{remote: s.remote}
	s.Rig = rig.New(t, rig.AnyPort(), rig.With("hub-listen", "127.0.0.1:0"), rig.With("log-level", "info"),
		rig.Variable(failpoint.Variable, socket), rig.TolerateViolations(), // violations judges them
		rig.Cloudly(func(c *simulate.CloudlyConfig) { c.RecordLimit = cloudlyRecord }))
	s.must(s.remote.Attached(s.Soon()))
	s.WaitReady()
	s.fleet = newFleet(s, nodes)
	s.leases = newLeases(s)
	s.tunnel = newTunnel(s)
	s.edge = newEdge(s)
	return s
}

// randomOf is what a schedule is drawn by.
func randomOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func (s *soak) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// fault notes what is wrong. Any goroutine may call it.
func (s *soak) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, fmt.Sprintf(format, args...))
}

// work has everybody work until the returned function is called.
func (s *soak) work() (rest func()) {
	fleet, tunnel := s.fleet.work(s.random), s.tunnel.work(s.random)
	return func() { fleet(); tunnel() }
}

// warm lets tables and pools grow to what the work needs, and has a run held for every
// leased node: what the later points are compared with has all of it.
func (s *soak) warm() {
	s.t.Helper()
	s.whole()
	s.leases.handAll(runWindows)
	s.pause(time.Second, time.Second)
}

// happen does one thing, and looks whether anything is wrong so far.
func (s *soak) happen(e event) {
	s.t.Helper()
	s.events, s.done = append(s.events, e), append(s.done, e.name)
	begun := time.Now()
	e.do(s)
	s.done[len(s.done)-1] = fmt.Sprintf("%s (%s)", e.name, time.Since(begun).Round(time.Millisecond))
	s.judgeSoFar()
	if s.random.IntN(4) > 0 { // or hardly any node ever had a session
		s.fleet.registerAgain()
	}
	s.pause(s.rhythm/4, s.rhythm)
}

// judgeSoFar ends the run at the first fault of those that can be seen under way.
func (s *soak) judgeSoFar() {
	s.t.Helper()
	s.leases.fold()
	s.mu.Lock()
	found := slices.Concat(s.found, s.fleet.faults(), s.tunnel.laws.faults(), s.leases.slots.faults())
	s.mu.Unlock()
	s.report(found)
}

// report ends the run when something is wrong.
func (s *soak) report(found []string) {
	s.t.Helper()
	for i, what := range found {
		if i == 20 {
			s.t.Errorf("and %d more", len(found)-i)
			break
		}
		s.t.Error(what)
	}
	if len(found) > 0 {
		s.t.FailNow()
	}
}

// pause waits for a random time.
func (s *soak) pause(least, most time.Duration) {
	d := least
	if most > least {
		d += time.Duration(s.random.Int64N(int64(most - least)))
	}
	time.Sleep(d)
}

// step sets the clock.
func (s *soak) step(by time.Duration) { s.t.Helper(); s.must(s.clock.step(by)) }

// hold has the next goroutines that come to a place wait there, and returns how often it
// was reached before. Whoever holds releases.
func (s *soak) hold(place failpoint.Name, hits int) (times int) {
	s.t.Helper()
	times = s.remote.Times(string(place))
	s.must(s.remote.Hold(string(place), hits, control.MaximumWait))
	return times
}

func (s *soak) release(place failpoint.Name) { s.t.Helper(); s.must(s.remote.Release(string(place))) }

// reached waits until a place was reached so often.
func (s *soak) reached(place failpoint.Name, times int) {
	s.t.Helper()
	s.must(s.remote.Reached(s.Soon(), string(place), times))
}

// cutting returns the number of the newest socket to Cloudly, before it is cut.
func (s *soak) cutting() int { return s.Cloudly.Opened() }

// accepted brings Cloudly back, by every way in which it can be away, and returns when it
// has accepted the relay on a socket newer than one of before. SIGHUP cuts a wait short.
func (s *soak) accepted(was int) {
	s.t.Helper()
	s.Cloudly.Return()
	s.must(s.Upstream.Resume())
	next := time.Now()
	s.Eventually("a new registration", func() error {
		socket, ok := s.Cloudly.Registered()
		if ok && socket > was {
			return nil
		}
		if time.Now().After(next) {
			s.Signal(syscall.SIGHUP)
			next = time.Now().Add(time.Second / 4)
		}
		return fmt.Errorf("socket %d carries the relay: %t", socket, ok)
	})
}

// back is accepted, and waits until the relay knows.
func (s *soak) back(was int) {
	s.t.Helper()
	s.Eventually("a session that both sides know of", func() error {
		s.accepted(was)
		before, _ := s.Cloudly.Registered()
		known := rig.SectionOf[cloudly.Status](s.Rig, cloudly.Name).Registered
		if socket, ok := s.Cloudly.Registered(); !known || !ok || socket != before {
			return fmt.Errorf("socket %d carries the relay: %t, which knows: %t", socket, ok, known)
		}
		return nil
	})
}

// wantAllReached checks that the places were reached at which what happened holds somebody:
// one that stands where nobody comes would pass unnoticed.
func (s *soak) wantAllReached() {
	s.t.Helper()
	for _, e := range s.events {
		if e.holds != "" && s.remote.Times(string(e.holds)) == 0 {
			s.t.Errorf("nothing was held at %s in this run", e.holds)
		}
	}
}

// end ends the relay under load.
func (s *soak) end() {
	s.t.Helper()
	rest := s.work()
	s.pause(300*time.Millisecond, 600*time.Millisecond)
	begun := time.Now()
	s.Signal(syscall.SIGTERM)
	code := s.Wait()
	took := time.Since(begun)
	s.tunnel.close() // or a transfer would wait for its end
	rest()
	if code != 0 || took > drainLimit {
		s.t.Errorf("the relay ended with %d, %s after SIGTERM", code, took.Round(time.Millisecond))
	}
	s.fleet.fold()
	s.report(slices.Concat(s.fleet.reports.faults(), s.fleet.pushes.faults(), s.fleet.faults(), s.tunnel.laws.faults(), s.violations()))
	s.t.Logf("ended %s after SIGTERM", took.Round(time.Millisecond))
}
