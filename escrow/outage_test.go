package escrow

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// admitting is a node that judges renewals as the seed does, by the true time.
type admitting struct {
	projection simulate.Projection
	previous   *contract.DNSLeaseRenewal
	admitted   map[int64][]time.Time // by sequence
	refused    []string
	replayed   int
}

// cluster is nodes that judge, with the relay and the Cloudly that give them
// renewals. Sequence n is the slot that opens n times ten minutes after the begin.
type cluster struct {
	*rig
	ids   []string
	nodes map[string]*admitting
	epoch int
}

func newCluster(t testing.TB, n int) *cluster {
	c := &cluster{rig: newRig(t), nodes: map[string]*admitting{}}
	for i := range n {
		id := fmt.Sprintf("node-%d", i)
		c.ids = append(c.ids, id)
		c.nodes[id] = &admitting{admitted: map[int64][]time.Time{}, projection: simulate.Projection{
			Reference: projection("projection:1", 4), Scope: sessionOf(id, "ns:1", 1).Scope, DNS: windowsOf(begin, 1)[0],
		}}
	}
	c.answering(func(_ context.Context, p pushed) ([]byte, error) {
		if err := c.admit(p.renewal); err != nil {
			return nil, &typedsocket.RemoteError{Peer: "node", Text: err.Error()}
		}
		return acknowledging(p), nil
	})
	return c
}

// admit has a node judge a renewal.
func (c *cluster) admit(x contract.DNSLeaseRenewal) error {
	c.rig.mu.Lock()
	defer c.rig.mu.Unlock()
	n := c.nodes[x.NodeID]
	how, err := simulate.AdmitRenewal(x, n.projection, n.previous, n.projection.Scope, time.Now())
	switch {
	case err != nil:
		n.refused = append(n.refused, fmt.Sprintf("%d at %s: %v", x.Sequence, time.Now().UTC().Format("15:04:05"), err))
	case how == simulate.Replay:
		n.replayed++
	default:
		n.previous = &x
		n.admitted[x.Sequence] = append(n.admitted[x.Sequence], time.Now())
	}
	return err
}

// slotNow is the number of the slot that is open by the true time.
func slotNow() int64 { return int64(time.Since(begin) / slotEvery) }

// runFrom is what Cloudly hands over: the grid from a slot on.
func runFrom(id string, slot int64, n int) contract.HoldDNSLeaseRenewalsRequest {
	return grid(spec{node: id, sequence: slot}, begin.Add(time.Duration(slot)*slotEvery), n)
}

// returns is Cloudly coming back: it registers the relay, its nodes register again,
// it delivers the slot that is open, and hands over what follows.
func (c *cluster) returns() {
	c.epoch++
	c.SessionRegistered()
	for _, id := range c.ids {
		c.Bound(bindingOf(id, c.epoch))
	}
	c.delivers()
}

// delivers is Cloudly in a slot.
func (c *cluster) delivers() {
	for _, id := range c.ids {
		if now := slotNow(); now > 0 {
			c.admit(runFrom(id, now, 1).Renewals[0].Renewal)
		}
		c.must(runFrom(id, slotNow()+1, 23))
	}
}

// wantSlots checks that each of the slots was admitted once, at its very beginning.
func (c *cluster) wantSlots(id string, from, to int64, late time.Duration) {
	c.t.Helper()
	n := c.nodes[id]
	for slot := from; slot <= to; slot++ {
		at := n.admitted[slot]
		open := begin.Add(time.Duration(slot) * slotEvery)
		if len(at) != 1 || at[0].Before(open) || at[0].After(open.Add(late)) {
			c.t.Errorf("%s: slot %d of %s was admitted at %v", id, slot, open.Format("15:04"), at)
		}
	}
	for slot := range n.admitted {
		if slot < from || slot > to {
			c.t.Errorf("%s: slot %d was admitted", id, slot)
		}
	}
}

// A four-hour outage on the grid: every slot of the held run reaches every node that
// can be reached once, none early, none late, and nothing is pushed twice.
func TestOutageOfFourHours(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 6)
		time.Sleep(3 * time.Minute)
		c.returns()
		time.Sleep(4 * time.Minute)
		c.SessionLost()
		time.Sleep(time.Hour)
		c.Unbound("node-5")
		time.Sleep(3*time.Hour + 10*time.Minute)
		synctest.Wait()
		for _, id := range c.ids[:5] {
			c.wantSlots(id, 1, 23, 0)
		}
		c.wantSlots("node-5", 1, 6, 0)
		for id, n := range c.nodes {
			if len(n.refused) > 0 || n.replayed > 0 {
				t.Errorf("%s refused %q and was given %d again", id, n.refused, n.replayed)
			}
		}
		if n := c.metrics.pushes.Value(); n != 5*23+6 {
			t.Errorf("%d pushes", n)
		}
		if got := len(c.eventsOf(RenewalReleased, RenewalAcknowledged)); got != 2*(5*23+6) {
			t.Errorf("%d events of releases", got)
		}
		if got := c.eventsOf(CoverageEnded); len(got) != 6 {
			t.Errorf("events %q", got)
		}
		v := c.node("node-0")
		if v.Held != 0 || v.Acknowledged.Sequence != 23 || v.Current != nil || !v.NextSlot.IsZero() {
			t.Errorf("afterwards %+v", v)
		}
		c.SessionRegistered()
		want := []string{"renewals-release-begun count=6 expiresAt=2000-01-01T04:05:00.000Z", "renewals-release-ended count=121 durationSeconds=15000"}
		if got := c.eventsOf(ReleaseBegun, ReleaseEnded); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("events %q", got)
		}
	})
}

// The same with a clock that steps: nothing while it is suspect, the due one when it
// is not any more, and never one that the node would refuse as too early.
func TestO36_OutageUnderASteppingClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.returns()
		c.SessionLost()
		const half = 500 * time.Millisecond
		step := func(after, by time.Duration) { time.Sleep(after); c.clock.step(by) }

		step(61*time.Minute, -7*time.Minute)       // 01:01 true, 00:54 by the clock
		step(69*time.Minute+half, 7*time.Minute)   // 02:10:00.5: right again
		step(21*time.Minute-half, -20*time.Second) // 02:31: too little to matter
		step(9*time.Minute+half, 20*time.Second)   // 02:40:00.5
		time.Sleep(80*time.Minute + time.Second)
		synctest.Wait()
		for _, id := range c.ids {
			n := c.nodes[id]
			at := func(slot int64) string {
				if len(n.admitted[slot]) != 1 {
					return fmt.Sprint(n.admitted[slot])
				}
				return n.admitted[slot][0].UTC().Format("15:04:05")
			}
			// Suspect from 01:01 to 01:08, by when the clock shows 01:01 again; late by what
			// the clock is behind until it is put right.
			for slot, want := range map[int64]string{6: "01:00:00", 7: "01:17:00", 8: "01:27:00", 12: "02:07:00", 13: "02:10:01",
				14: "02:20:00", 15: "02:30:00", 16: "02:40:01", 17: "02:50:00", 23: "03:50:00"} {
				if got := at(slot); got != want {
					t.Errorf("%s: slot %d was admitted at %s, want %s", id, slot, got, want)
				}
			}
			if len(n.admitted) != 23 || len(n.refused) > 0 {
				t.Errorf("%s: %d slots admitted, refused %q", id, len(n.admitted), n.refused)
			}
		}
	})
}

// A run of random flaps, among them at the moment of a slot: what the relay gives
// while detached and Cloudly while attached is every slot once.
func TestFlapsOverFourHours(t *testing.T) {
	for seed := range uint64(3) {
		bubble(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			c := newCluster(t, 3)
			time.Sleep(time.Minute)
			c.returns()
			until := begin.Add(4*time.Hour + time.Minute)
			for attached := true; time.Now().Before(until); attached = !attached {
				end := time.Now().Add(time.Duration(random.IntN(int(20 * time.Minute))))
				if random.IntN(3) == 0 {
					end = begin.Add(time.Duration(slotNow()+1) * slotEvery)
				}
				for attached { // Cloudly delivers at each slot while it is there
					next := begin.Add(time.Duration(slotNow()+1) * slotEvery)
					if !next.Before(end) {
						break
					}
					time.Sleep(time.Until(next))
					c.delivers()
				}
				time.Sleep(time.Until(end))
				if attached {
					c.SessionLost()
				} else {
					c.returns()
				}
			}
			synctest.Wait()
			for _, id := range c.ids {
				c.wantSlots(id, 1, slotNow(), 0)
				if n := c.nodes[id]; len(n.refused) > 0 {
					t.Errorf("seed %d: %s refused %q", seed, id, n.refused)
				}
			}
		})
	}
}
