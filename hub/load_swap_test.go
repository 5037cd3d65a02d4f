package hub

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/hub/network/networktest"
)

// swapWait bounds what this test waits for, on a machine that may be busy.
const swapWait = time.Minute

// until waits for a condition.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(swapWait); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain for %s", what)
		}
	}
}

// fewUnderWay is how many packets of one flow are under way at most, so that none is
// lost for want of room.
const fewUnderWay = 16

// closedLoop sends packets from one node to another until it is stopped. Then it returns
// how many.
func closedLoop(from, to *node, source, destination int) (stop func() int) {
	var end atomic.Bool
	sent := make(chan int)
	go func() {
		number := 0
		defer func() { sent <- number }()
		for ; !end.Load(); number++ {
			for waited := time.Now(); number-to.arrived() >= fewUnderWay; {
				select {
				case <-to.got:
				case <-time.After(10 * time.Millisecond):
				}
				if end.Load() || time.Since(waited) > swapWait {
					return // what is missing is lost
				}
			}
			from.send(packetOf(ip(source), ip(destination), 1000, number))
		}
	}()
	return func() int { end.Store(true); return <-sent }
}

// judged is how many packets of node i have come out of its tunnel.
func (r *rig) judged(i int) *atomic.Uint64 {
	r.Hub.mu.Lock()
	defer r.Hub.mu.Unlock()
	for _, s := range r.seats {
		if s != nil && s.node == fmt.Sprintf("node-%03d", i) {
			return &s.traffic.fromPackets
		}
	}
	panic("no such member")
}

// arrived is how many packets have come.
func (n *node) arrived() int { n.mu.Lock(); defer n.mu.Unlock(); return len(n.packets) }

// R60, R66: the same in true time, where packets are judged while networks change
// places: of a flow that all of them grant nothing is lost, and of one that a network
// forbids nothing passes that was sent when it was effective.
func TestR60_R66_SwapsAmongPackets(t *testing.T) {
	r := newLoopbackRig(t)
	c := r.cloudly()
	x := keyed(networktest.Granting())
	c.must(renewed(x, 1))
	a, b, toggled, target := r.dial(0), r.dial(1), r.dial(4), r.dial(5)
	stop := closedLoop(a, b, 0, 1)
	judged := r.judged(4)
	var sent uint64 // on the flow from 4 to 5
	var forbidden [][2]int
	for revision := int64(2); revision <= 9; revision++ {
		next := renewed(x, revision)
		if revision%2 == 0 {
			next = barred(next, revision, 4, 5)
		}
		applied := make(chan struct{})
		go func() { defer close(applied); r.applyWhole(c, next) }()
		begun := -1 // the first packet that was sent when the network was effective
		for after := 0; after < 50; {
			select {
			case <-applied:
				begun, applied = int(sent), nil
			default:
			}
			until(t, "the hub to judge", func() bool { return sent-judged.Load() < fewUnderWay })
			toggled.send(packetOf(ip(4), ip(5), 1000, int(sent)))
			sent++
			if begun >= 0 {
				after++
			}
		}
		if revision%2 == 0 {
			forbidden = append(forbidden, [2]int{begun, int(sent)})
		}
		until(t, "the hub to have judged all packets", func() bool { return judged.Load() == sent })
	}
	n := stop()
	until(t, "all granted packets", func() bool { return b.arrived() >= n })
	if got := distinct(numbers(b.take())); got != n {
		t.Errorf("%d of %d granted packets arrived", got, n)
	}
	// Packets keep their order: behind the last one that is granted nothing comes.
	passed := []int{}
	until(t, "the last packet that is granted", func() bool {
		passed = append(passed, numbers(target.take())...)
		return slices.Contains(passed, int(sent)-1)
	})
	for _, of := range forbidden {
		for _, number := range passed {
			if number >= of[0] && number < of[1] {
				t.Errorf("packet %d passed, which was forbidden like all from %d to %d", number, of[0], of[1]-1)
			}
		}
	}
	if m := r.member(0); m.Sessions != 1 || len(m.Dropped) != 0 {
		t.Errorf("%+v", m)
	}
}
