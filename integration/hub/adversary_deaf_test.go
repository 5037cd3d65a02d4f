package hub_test

import (
	"fmt"
	"testing"
)

// burst is how many packets of a round are under way at once: fewer than any queue on the
// way has room for, so that none of them may be lost.
const burst = 16

// rounds has a peer send packets to a node in rounds, each when the one before has
// arrived, until it is enough. Not one may be lost.
func (c *cluster) rounds(what string, p *peer, from, to int, arrived *tally, beside func() error, enough func(round int) bool) {
	c.t.Helper()
	packet := stamped(from, to)
	for round := 1; !enough(round); round++ {
		for n := range uint32(burst) {
			if err := p.send(packet(n)); err != nil {
				c.t.Fatalf("%s: %v", what, err)
			}
			if err := beside(); err != nil {
				c.t.Fatalf("%s: %v", what, err)
			}
		}
		c.Eventually(fmt.Sprintf("%s: round %d", what, round), func() error {
			if n, _ := arrived.of(from); n != round*burst {
				return fmt.Errorf("%d of %d packets came", n, round*burst)
			}
			return nil
		})
	}
}

// A member that takes nothing, be it that its node reads nothing or that it does not even
// acknowledge, slows nobody: neither who sends to it and to others, nor two others. What it
// does not take is dropped, and counted as its own.
func TestAMemberThatNeverReadsSlowsNobody(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"acknowledges nothing", "reads no packet"} {
		t.Run(kind, func(t *testing.T) {
			c := start(t)
			for range 4 {
				c.admit()
			}
			c.grant([2]int{0, 1}, [2]int{0, 2}, [2]int{2, 3}, [2]int{3, 1})
			c.push()
			tap, to2, to3 := newTap(), newTally(), newTally()
			a, other := c.dial(0), c.dial(3, func(d *dialling) { d.got = to3.got })
			stall := make(chan struct{})
			stuck := c.dial(1, func(d *dialling) {
				if d.tap = tap; kind == "reads no packet" {
					d.got = func([]byte) { <-stall }
				}
			})
			t.Cleanup(func() { close(stall) })
			b := c.dial(2, func(d *dialling) { d.got = to2.got })
			if kind == "acknowledges nothing" {
				tap.deafen()
			}
			large := func() []byte { return inner{from: workload(0), to: workload(1), length: 1100}.bytes() }
			toStuck := func() error { return a.send(large()) }
			const least = 60
			dropped := func() uint64 { return c.shownOf(1).ToDropped }
			c.rounds("to another, beside", a, 0, 2, to2, toStuck, func(round int) bool {
				if kind == "reads no packet" {
					// QUIC acknowledges for its node, and drops what nobody takes.
					return round > least && tap.received[lostIn].Load() > 0
				}
				return round > least && dropped() > 100
			})
			flood := c.sends(other, 0, func(n uint32) []byte {
				return inner{from: workload(3), to: workload(1), number: n, length: 1100}.bytes()
			})
			c.rounds("between two others, meanwhile", b, 2, 3, to3, func() error { return nil }, func(round int) bool { return round > least })
			flood.stop()
			m := c.shownOf(1)
			if m.Session == nil || m.Session.QueuedBytes > m.Session.QueueLimit || m.Sessions != 1 || !stuck.open() {
				t.Errorf("shown %+v", m)
			}
			c.Eventually("what was dropped to be counted as the member's", func() error {
				lost, _ := c.dropped("queue-full")
				if of := c.shownOf(1).ToDropped; kind == "acknowledges nothing" && (lost == 0 || lost != float64(of)) {
					return fmt.Errorf("%v packets are dropped for want of room, %d of the member's", lost, of)
				}
				return nil
			})
			for n, want := range []uint64{1, 1, 1, 1} {
				if m := c.shownOf(n); m.Sessions != want || n > 1 && m.ToDropped != 0 {
					t.Errorf("%s: %+v", name(n), m)
				}
			}
		})
	}
}
