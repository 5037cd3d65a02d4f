package soak_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/forward"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// steadyLooks is in how many looks in a row the goroutines must be as many for a point to
// be quiet. Goroutines that end are gone within moments, and none begin.
const steadyLooks = 8

// quietWait is what a quiet point is waited for: the longest that sockets of the relay
// take to end on both sides, and a hub's connections.
const quietWait = 45 * time.Second

// point is a quiet point.
type point struct {
	t *testing.T
	s *soak
	weight
	profile string // of its goroutines
}

// quiet brings everything to rest, and judges all that has happened.
func (s *soak) quiet(name string) *point {
	s.t.Helper()
	s.must(s.Upstream.Resume())
	s.Signal(syscall.SIGHUP)
	s.whole()
	s.tunnel.settle()
	s.tunnel.stands()
	s.edge.publish()
	s.edge.stands()
	s.wantOneSession()
	s.wantCertificate()
	before := s.leases.pushed()

	s.fleet.fold()
	s.leases.fold()
	s.report(slices.Concat(s.fleet.reports.faults(), s.fleet.pushes.faults()))
	s.judgeSoFar()
	s.report(s.violations())
	s.AssertNoMarkers()
	if n := s.Cloudly.Frames().Dropped(); n > 0 {
		s.t.Errorf("%d frames were dropped from the record of cloudly, so not all secrets are known", n)
	}
	s.Cloudly.Frames().Forget()
	s.fleet.reports.close()
	s.fleet.pushes.close()
	if s.t.Failed() {
		s.t.FailNow()
	}

	p := &point{t: s.t, s: s}
	p.weigh()
	if now := s.leases.pushed(); now != before {
		s.t.Errorf("escrow: %v renewals were pushed while Cloudly was there", now-before)
	}
	s.t.Logf("%s: %d goroutines, %d bytes on the heap; %s; %s; %d packets, %v transfers; %d slots", name, p.goroutines, p.heap,
		s.fleet.reports.summary(), s.fleet.pushes.summary(), s.tunnel.laws.total(), s.tunnel.transfers(), s.leases.slots.taken())
	return p
}

// violations are what Cloudly, the nodes and the ingress noticed and the contract forbids.
func (s *soak) violations() []string {
	all := map[string][]simulate.Violation{
		"cloudly":     withoutBroken(s.Cloudly.Violations(), s.broken),
		"the ingress": s.edge.ingress.Violations(),
	}
	for i, p := range s.fleet.nodes {
		all[s.fleet.ids[i]] = p.Violations()
	}
	var found []string
	for who, violations := range all {
		for _, v := range violations {
			found = append(found, fmt.Sprintf("%s noticed %s", who, v))
		}
	}
	slices.Sort(found)
	return found
}

// withoutBroken leaves out what an end of custody may cause: a large frame of a node that
// was half written on a socket that stays is ended where it stands, and so is no JSON,
// which a peer passes over (typedsocket.Socket.DropFlows). Broken is how often that may
// have been, by socket.
func withoutBroken(all []simulate.Violation, broken map[int]int) []simulate.Violation {
	left := maps.Clone(broken)
	return slices.DeleteFunc(all, func(v simulate.Violation) bool {
		if v.Rule != simulate.MalformedEnvelope || left[v.Socket] == 0 {
			return false
		}
		left[v.Socket]--
		return true
	})
}

// whole waits until every node is registered over the socket that carries the relay.
func (s *soak) whole() {
	s.t.Helper()
	s.must(s.remote.Mend(string(failpoint.NodeConnection)))
	s.Within(quietWait, "every node with a session", func() error {
		s.fleet.registerAgain()
		return s.fleet.bound()
	})
}

// registerAgain has nodes whose session is of an earlier socket register again on theirs
// at once. Left alone, the relay would have them do so one after the other.
func (f *fleet) registerAgain() {
	var all sync.WaitGroup
	for i, p := range f.nodes {
		if state, _ := f.s.Cloudly.Node(f.ids[i]); !state.Connected {
			all.Go(func() {
				// A node that gave up waiting would not know which session it has got.
				ctx, cancel := within(answerWait)
				defer cancel()
				p.Register(ctx) // who has no socket registers by itself
			})
		}
	}
	all.Wait()
}

// bound reports whether Cloudly has all nodes behind the relay's socket, and the relay
// confirmed their sessions.
func (f *fleet) bound() error {
	if n := f.s.Cloudly.ConnectedNodes(); n != len(f.nodes) {
		return fmt.Errorf("cloudly has %d nodes", n)
	}
	status := rig.SectionOf[forward.Status](f.s.Rig, forward.Name)
	confirmed := 0
	for _, n := range status.Nodes {
		if n.Confirmed {
			confirmed++
		}
	}
	if !status.Attached || confirmed != len(f.nodes) {
		return fmt.Errorf("the relay is attached: %t, and has confirmed %d of %d sessions", status.Attached, confirmed, len(status.Nodes))
	}
	return nil
}

// wantOneSession waits until Cloudly and each node mean the same session: what the relay
// has bound between them is tried by a push, which it lets pass under no other.
func (s *soak) wantOneSession() {
	s.t.Helper()
	s.Eventually("sessions that are the same to all", func() error {
		wrong := make([]error, len(s.fleet.nodes))
		var all sync.WaitGroup
		for i := range s.fleet.nodes {
			all.Go(func() { wrong[i] = s.fleet.oneSession(i) })
		}
		all.Wait()
		return errors.Join(wrong...)
	})
}

func (f *fleet) oneSession(i int) error {
	id := f.ids[i]
	state, _ := f.s.Cloudly.Node(id)
	held, ok := f.nodes[i].Binding()
	if !ok || string(held.Received) != string(state.Session) || state.Nonce != f.nodes[i].Nonce() {
		return fmt.Errorf("%s holds another session than cloudly, whose epoch is %d (registered: %t)", id, state.Epoch, ok)
	}
	return f.reach(i)
}

// reach has Cloudly ask something of a node.
func (f *fleet) reach(i int) error {
	ctx, cancel := within(answerWait)
	defer cancel()
	if _, err := f.s.Cloudly.CallNode(ctx, f.ids[i], "readRuntimeAssignmentStats", []byte(`{"assignment":{}}`)); err != nil {
		return fmt.Errorf("a push to %s was told %s", f.ids[i], toldOf(err))
	}
	return nil
}

// weigh waits until goroutines are as many for a while, and takes what the relay holds.
func (p *point) weigh() {
	p.t.Helper()
	last, same := -1, 0
	p.s.Within(quietWait, "a steady number of goroutines", func() error {
		p.profile = string(p.s.Get("/debug/pprof/goroutine?debug=1").Body)
		now, err := readGoroutines(p.profile)
		if err != nil {
			return err
		}
		if now != last {
			last, same = now, 0
		}
		if same++; same < steadyLooks {
			return errors.New("it changes")
		}
		return nil
	})
	p.goroutines, p.heap = last, p.readHeap()
}

func (p *point) readHeap() int {
	p.t.Helper()
	heap := 0
	for range 2 { // pools keep things over one collection
		p.s.Eventually("a profile of the heap", func() (err error) { // one at a time is made
			heap, err = readHeap(string(p.s.Get("/debug/pprof/heap?gc=1&debug=1").Body))
			return err
		})
	}
	events, _ := p.s.Metrics().Value("relay_events_held_bytes")
	return heap - int(events)
}

// compare checks that a later point, once all has ended that was about to, holds no more
// than this one.
func (p *point) compare(later *point) {
	p.t.Helper()
	deadline := time.Now().Add(quietWait)
	for later.weight.faults(p.weight) != nil && time.Now().Before(deadline) {
		later.weigh()
	}
	found := later.weight.faults(p.weight)
	if len(found) > 0 {
		p.t.Logf("the goroutines now:\n%s\nand at the earlier point:\n%s", later.profile, p.profile)
	}
	p.s.report(found)
}
