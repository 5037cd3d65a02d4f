package hub_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/hub/tunnel"
)

// watched is a member of which a test knows, for each packet that comes to it, whether it
// had left the hub before an instant.
type watched struct {
	*peer
	tap *tap

	mu        sync.Mutex
	forbidden func(from int) bool // nil while every packet may come
	from      map[int]int         // packets that came, by who sent them
	behind    map[int]int         // those that came and were forbidden
}

// watch dials node n.
func (c *cluster) watch(n int) *watched {
	c.t.Helper()
	w := &watched{tap: newTap(), from: map[int]int{}, behind: map[int]int{}}
	w.peer = c.dial(n, func(d *dialling) { d.tap, d.got = w.tap, w.got })
	return w
}

func (w *watched) got(packet []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := int(packet[atSource+2])
	w.from[from]++
	if w.forbidden != nil && w.forbidden(from) {
		w.behind[from]++
	}
}

func (w *watched) of(from int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.from[from]
}

// fromNow calls packets forbidden which leave the hub behind this instant; what has left
// before and is on its way yet is none of them. Nil calls none so.
func (w *watched) fromNow(ctx context.Context, forbidden func(from int) bool) error {
	defer w.tap.release()
	if forbidden != nil {
		if err := w.tap.upTo(ctx); err != nil {
			return err
		}
		if err := w.drain(ctx); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forbidden = forbidden
	return nil
}

// all does something with all members that are watched, beside each other.
func (c *cluster) all(members []*watched, do func(w *watched) error) {
	c.t.Helper()
	failures := make([]error, len(members))
	var all sync.WaitGroup
	for n, w := range members {
		all.Go(func() { failures[n] = do(w) })
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		c.t.Fatal(err)
	}
}

// wantFrom waits until so many more packets came from one node to another.
func (c *cluster) wantFrom(what string, to *watched, from, count int) {
	c.t.Helper()
	before := to.of(from)
	c.Eventually(what, func() error {
		if now := to.of(from); now < before+count {
			return fmt.Errorf("%d came, %d before", now, before)
		}
		return nil
	})
}

// pushIdle pushes the network, again while the hub is not through with it.
func (c *cluster) pushIdle() (again int) {
	c.t.Helper()
	c.network.Revision++
	want := fmt.Sprintf(`{"appliedRevision":%d,"state":"idle"}`, c.network.Revision)
	c.Eventually("an answer that says idle", func() error {
		answer, err := c.call(body(c.network))
		if err != nil {
			c.t.Fatal(err)
		}
		if answer != want {
			again++
			return fmt.Errorf("answered %s", answer)
		}
		return nil
	})
	return again
}

// full makes packets that a packet of QUIC holds one of, so that what waits in queues is
// many of them.
func full(from, to int) func(n uint32) []byte {
	return func(n uint32) []byte {
		return inner{from: workload(from), to: workload(to), number: n, length: 1100}.bytes()
	}
}

const (
	// swaps is how often a grant is withdrawn, and custody ended.
	swaps = 20
	// passing is how many packets must have passed in each direction before.
	passing = 40
	// slowLine is the time that each datagram takes to a member whose queues at the hub
	// are full.
	slowLine = 500 * time.Microsecond
	// fast is the pause between packets: more come than a slow line carries.
	fast = 100 * time.Microsecond
)

// R60, design §5.4: of the packets that a network forbids not one leaves the hub behind the
// answer that the network is effective: under load in both directions, over swap after
// swap, to members that take packets as fast as they come and to such that do not.
func TestR60_NothingForbiddenLeavesBehindTheAnswer(t *testing.T) {
	c := start(t)
	for range 3 {
		c.admit()
	}
	granted := [][2]int{{0, 1}, {1, 0}, {2, 0}, {2, 1}}
	c.grant(granted...)
	c.push()
	members := []*watched{c.watch(0), c.watch(1)}
	third := c.dial(2)
	for n, w := range members {
		c.sends(w.peer, fast, full(n, 1-n))
		c.sends(third, time.Millisecond, full(2, n))
	}
	applying := 0
	for swap := range swaps {
		for n, w := range members {
			w.tap.pace.Store(0)
			if swap%3 == n {
				w.tap.pace.Store(int64(slowLine))
			}
			c.wantFrom("packets that are granted to "+name(n), w, 1-n, passing)
		}
		c.grant(granted[2:]...)
		applying += c.pushIdle()
		c.all(members, func(w *watched) error {
			return w.fromNow(c.Soon(), func(from int) bool { return from != 2 })
		})
		for n, w := range members {
			c.wantFrom("packets that are granted still to "+name(n), w, 2, passing/2)
		}
		c.all(members, func(w *watched) error { return w.fromNow(c.Soon(), nil) })
		c.grant(granted...)
		c.pushIdle()
	}
	passed := 0
	for n, w := range members {
		w.mu.Lock()
		passed += w.from[1-n]
		if len(w.behind) != 0 {
			t.Errorf("%d packets left for %s behind the answer that forbade them", w.behind[1-n], name(n))
		}
		w.mu.Unlock()
		if !w.open() || c.shownOf(n).Sessions != 1 {
			t.Errorf("%s did not keep its session", name(n))
		}
	}
	lost, _ := c.dropped("no-grant")
	if passed < 2*swaps*passing || lost == 0 || applying == 0 {
		t.Errorf("%d packets passed, %v were forbidden, %d answers said applying", passed, lost, applying)
	}
}

// R20, contract §6.2: not one packet leaves behind the end of custody, end after end, under
// load in both directions.
func TestR20_NothingLeavesBehindTheEndOfCustody(t *testing.T) {
	c := twoMembers(t)
	passed := 0
	for end := range swaps {
		members := []*watched{c.watch(0), c.watch(1)}
		var flows []*flow
		for n, w := range members {
			if end%3 == n {
				w.tap.pace.Store(int64(slowLine))
			}
			flows = append(flows, c.sends(w.peer, fast, full(n, 1-n)))
		}
		for n, w := range members {
			c.wantFrom("packets to "+name(n), w, 1-n, passing)
		}
		c.Cloudly.DisableRelay()
		c.RegisterAgain()
		c.Eventually("the end of custody", func() error {
			// Suspended is what the hub is from when it hears of the end until that is over.
			if s := c.shown(); s.Network != nil || s.Attached || s.Suspended {
				return fmt.Errorf("shown %+v", s)
			}
			return nil
		})
		c.all(members, func(w *watched) error { return w.fromNow(c.Soon(), func(int) bool { return true }) })
		for n, w := range members {
			c.wantClosed(name(n), w.peer, tunnel.CloseNotAdmitted)
			if err := w.drain(c.Soon()); err != nil {
				t.Fatal(err)
			}
			w.mu.Lock()
			passed += w.from[1-n]
			if len(w.behind) != 0 {
				t.Errorf("%d packets left for %s behind the end of custody", w.behind[1-n], name(n))
			}
			w.mu.Unlock()
			flows[n].stop()
			w.close()
		}
		pulls := c.counted("relay_hub_received_networks_total", "origin", "pulled", "outcome", "emptied")
		if err := c.Cloudly.EnableRelay(c.Origin()); err != nil {
			t.Fatal(err)
		}
		c.Configure(nil)
		c.waitEmptied(pulls + 1)
		c.applied("the network again", c.network, c.network.Revision)
	}
	if passed < 2*swaps*passing {
		t.Errorf("%d packets passed", passed)
	}
	if n := c.counted("relay_hub_ended_sessions_total", "reason", "custody-ended"); n != 2*swaps {
		t.Errorf("%v sessions are counted as ended with custody", n)
	}
}
