package hub

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"pgregory.net/rapid"

	"serve.zone/relay/hub/tunnel"
)

// floods returns what opens a connection from an address and goes no further.
func (r *rig) floods() func(i int, from string) (*node, error) {
	return func(i int, from string) (*node, error) {
		return r.dialIt(1000+i, func(d *dialling) {
			d.from = from
			d.stop = func(*node) bool { return false }
		})
	}
}

// Connections that are half open are bounded, all together and of one /24. One that comes
// then takes the place of another, of its own neighbourhood where that is what is full, and
// the other is told that the hub is busy.
func TestHalfOpenConnectionsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2))
		var retries atomic.Int64
		r.net.watch(func(from, _ netip.AddrPort, b []byte) bool {
			if from == r.Addr() && b[0]&0xf0 == 0xf0 { // RFC 9000 §17.2.5
				retries.Add(1)
			}
			return false
		})
		flood := r.floods()
		var near []*node
		for i := range maxHalfOpenOfOne {
			if i == maxHalfOpenOfOne/2 && retries.Load() != 0 {
				t.Error("an address had to prove itself below half the bound")
			}
			n, err := flood(i, fmt.Sprintf("203.0.113.%d:0", i+1))
			if err != nil {
				t.Fatalf("connection %d: %v", i, err)
			}
			near = append(near, n)
		}
		if retries.Load() == 0 {
			t.Error("no address had to prove itself above half the bound")
		}
		if _, err := flood(99, "203.0.113.200:0"); err != nil {
			t.Errorf("one more of the neighbourhood: %v", err)
		}
		settle()
		closed := 0
		for _, n := range near {
			if !n.open() {
				closed++
				if code := n.closed(); code != tunnel.CloseBusy {
					t.Errorf("closed with %v", code)
				}
			}
		}
		if closed != 1 || r.handshakes(endDisplaced) != 1 || r.status().HalfOpen != maxHalfOpenOfOne {
			t.Errorf("%d closed, %d counted, %d half open", closed, r.handshakes(endDisplaced), r.status().HalfOpen)
		}
		r.dial(0)
		for i := range maxHalfOpen - maxHalfOpenOfOne {
			if _, err := flood(100+i, fmt.Sprintf("100.64.%d.1:0", i)); err != nil {
				t.Fatalf("connection %d: %v", i, err)
			}
		}
		if half := r.status().HalfOpen; half != maxHalfOpen || r.handshakes(endDisplaced) != 1 {
			t.Errorf("%d half open, %d displaced", half, r.handshakes(endDisplaced))
		}
		r.dial(1) // at once
		settle()
		if half := r.status().HalfOpen; half != maxHalfOpen-1 || r.handshakes(endDisplaced) != 2 {
			t.Errorf("%d half open, %d displaced", half, r.handshakes(endDisplaced))
		}
		time.Sleep(handshakeLimit + time.Second)
		synctest.Wait()
		if half := r.status().HalfOpen; half != 0 {
			t.Errorf("%d half open after their time", half)
		}
		if len(r.eventsOf(HandshakeRefused)) > 4 {
			t.Errorf("%d events", len(r.eventsOf(HandshakeRefused)))
		}
	})
}

// A connection that is refused since no place can be taken for it learns so from QUIC.
func TestAConnectionWithoutAPlaceIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.gateMu.Lock()
		for i := range maxHalfOpen {
			r.gate.admit(addr(t, fmt.Sprintf("10.%d.0.1", i))) // whose connections cannot be closed
		}
		r.gateMu.Unlock()
		var refused *quic.TransportError
		if _, err := r.dialIt(0); !errors.As(err, &refused) || refused.ErrorCode != quic.ConnectionRefused {
			t.Errorf("dialled: %v", err)
		}
		if r.handshakes(endFull) == 0 || r.handshakes(endDisplaced) != 0 {
			t.Errorf("%d refused", r.handshakes(endFull))
		}
	})
}

// A connection whose place was taken takes no member's: the one that stands goes on.
func TestADisplacedConnectionTakesNoMembersPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 1))
		a := r.dial(0)
		_, err := r.dialIt(0, func(d *dialling) {
			d.from = "198.51.100.200:0"
			d.stop = func(*node) bool {
				settle()
				r.gateMu.Lock()
				defer r.gateMu.Unlock()
				if len(r.gate.waiting) != 1 {
					t.Fatalf("%d places can be taken", len(r.gate.waiting))
				}
				p := r.gate.waiting[0]
				r.gate.leave(p)
				p.lost = true // and its connection is not closed yet
				return true
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		settle()
		if m := r.member(0); !a.open() || m.Sessions != 1 || m.Session == nil || r.handshakes(endDisplaced) != 1 {
			t.Errorf("%+v, %d displaced", m, r.handshakes(endDisplaced))
		}
	})
}

// Above half the bound an address has to prove that it is there: by a Retry.
func TestRetryAboveHalfTheBound(t *testing.T) {
	g := newGate()
	for i := range maxHalfOpenOfOne/2 - 1 {
		g.admit(addr(t, fmt.Sprintf("203.0.113.%d", i)))
	}
	if g.strained(addr(t, "203.0.113.77")) {
		t.Error("strained below half")
	}
	g.admit(addr(t, "203.0.113.99"))
	if !g.strained(addr(t, "203.0.113.77")) || g.strained(addr(t, "198.51.100.1")) {
		t.Error("half of one neighbourhood")
	}
	for i := range maxHalfOpen {
		g.admit(addr(t, fmt.Sprintf("10.%d.0.1", i)))
	}
	if how, ok := g.admit(addr(t, "192.0.2.1")); ok || how != endFull || !g.strained(addr(t, "192.0.2.1")) || g.total != maxHalfOpen {
		t.Errorf("%v, %d", how, g.total)
	}
	g.release(addr(t, "203.0.113.1"))
	if _, ok := g.admit(addr(t, "192.0.2.1")); !ok {
		t.Error("a place that was given back is not given again")
	}
}

// Whatever comes and goes, both bounds hold, a place is taken only where one of them keeps
// somebody out, of the neighbourhood that is full if that is it, and only from a connection
// that can be closed; and every place comes back.
func TestPlacesAreTakenWhereABoundIsMet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGate()
		var held []*place
		subnet := rapid.IntRange(0, 6)
		for range rapid.IntRange(0, 800).Draw(t, "steps") {
			if len(held) > 0 && rapid.IntRange(0, 9).Draw(t, "leaves") == 0 {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "who")
				if was := !held[i].left; g.leave(held[i]) != was || g.leave(held[i]) {
					t.Fatal("it left twice, or not at all")
				}
				held = append(held[:i], held[i+1:]...)
				continue
			}
			a := netip.AddrFrom4([4]byte{10, byte(subnet.Draw(t, "subnet")), 0, 1})
			in := g.subnets[subnetOf(a)]
			full, crowded := g.total >= maxHalfOpen, in >= maxHalfOpenOfOne
			over := g.take(a)
			if over != nil && (!full && !crowded || crowded && subnetOf(over.address) != subnetOf(a) || over.conn == nil || !over.left || !over.lost) {
				t.Fatalf("%+v was taken with %d of %d, full: %v", over, in, g.total, full)
			}
			if _, ok := g.admit(a); ok != (over != nil || !full && !crowded) {
				t.Fatalf("admitted: %v", ok)
			} else if !ok {
				continue
			}
			p := &place{address: a}
			if held = append(held, p); rapid.Bool().Draw(t, "closable") {
				p.conn = new(quic.Conn)
				g.waiting = append(g.waiting, p)
			}
			if g.total > maxHalfOpen || g.subnets[subnetOf(a)] > maxHalfOpenOfOne {
				t.Fatalf("%d half open", g.total)
			}
		}
		for _, p := range held {
			g.leave(p)
		}
		if g.total != 0 || len(g.subnets) != 0 || len(g.waiting) != 0 {
			t.Fatalf("%d places did not come back", g.total)
		}
	})
}
