package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
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
			r.gate.admit(addr(t, fmt.Sprintf("10.%d.0.1", i)), time.Now())
		}
		r.gate.displaced = maxDisplaced // which do not end
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
				if len(r.gate.held) != 1 {
					t.Fatalf("%d places are held", len(r.gate.held))
				}
				r.gate.take(netip.Prefix{}, false) // and its connection is not closed yet
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

// One address opens connections and sends of each ClientHello the first packet alone, so
// that QUIC hands none of them over and none can be closed: a node of the same
// neighbourhood still gets in, and in their time they are gone.
func TestHalfAHelloKeepsNobodyOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2))
		hub, evil := r.Addr(), netip.MustParseAddr("100.64.0.1")
		var mu sync.Mutex
		seen := map[netip.AddrPort]map[bool]bool{}
		r.net.watch(func(from, to netip.AddrPort, b []byte) bool {
			if to != hub || from.Addr() != evil {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			initial, token := initialOf(b)
			if !initial || seen[from][token] {
				return true
			}
			if seen[from] == nil {
				seen[from] = map[bool]bool{}
			}
			seen[from][token] = true
			return false
		})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var all sync.WaitGroup
		const apart = 12 * time.Millisecond
		for range 2 * maxHalfOpenOfOne {
			socket, err := r.net.ListenPacket(ctx, "udp4", evil.String()+":0")
			if err != nil {
				t.Fatal(err)
			}
			transport := tunnel.NodeTransport(socket)
			all.Go(func() {
				transport.Dial(ctx, net.UDPAddrFromAddrPort(hub), tunnel.NodeTLS(), tunnel.NodeQUIC())
				transport.Close()
				socket.Close()
			})
			time.Sleep(apart)
		}
		r.gateMu.Lock()
		if r.gate.total != maxHalfOpenOfOne || r.gate.displaced != maxHalfOpenOfOne {
			t.Errorf("%d half open, %d have lost their places", r.gate.total, r.gate.displaced)
		}
		r.gateMu.Unlock()
		r.dial(0, func(d *dialling) { d.from = "100.64.0.200:0" })
		cancel()
		all.Wait()
		time.Sleep(hurriedIdle + time.Second/2)
		synctest.Wait()
		r.gateMu.Lock()
		if n := r.gate.total + r.gate.displaced; n > maxHalfOpenOfOne/2 {
			t.Errorf("%d connections stand after a hurried handshake's time", n)
		}
		r.gateMu.Unlock()
		time.Sleep(handshakeLimit)
		synctest.Wait()
		r.gateMu.Lock()
		defer r.gateMu.Unlock()
		if r.gate.total != 0 || r.gate.displaced != 0 {
			t.Errorf("%d half open, %d have lost their places", r.gate.total, r.gate.displaced)
		}
	})
}

// initialOf reports whether a datagram begins with an Initial packet, and whether that has
// the token of a Retry (RFC 9000 §17.2.2).
func initialOf(b []byte) (initial, token bool) {
	if b[0]&0xf0 != 0xc0 {
		return false, false
	}
	i := 5
	i += 1 + int(b[i])
	i += 1 + int(b[i])
	length, _, err := quicvarint.Parse(b[i:])
	return true, err == nil && length > 0
}

// Above half the bound an address has to prove that it is there: by a Retry.
func TestRetryAboveHalfTheBound(t *testing.T) {
	g := newGate()
	now := time.Now()
	for i := range maxHalfOpenOfOne/2 - 1 {
		g.admit(addr(t, fmt.Sprintf("203.0.113.%d", i)), now)
	}
	if g.strained(addr(t, "203.0.113.77")) {
		t.Error("strained below half")
	}
	g.admit(addr(t, "203.0.113.99"), now)
	if !g.strained(addr(t, "203.0.113.77")) || g.strained(addr(t, "198.51.100.1")) {
		t.Error("half of one neighbourhood")
	}
	for i := range maxHalfOpen {
		g.admit(addr(t, fmt.Sprintf("10.%d.0.1", i)), now)
	}
	if !g.strained(addr(t, "192.0.2.1")) || g.total != maxHalfOpen {
		t.Errorf("%d half open", g.total)
	}
}

// Whatever comes and goes, both bounds hold, a place is taken only where one of them keeps
// somebody out, of the neighbourhood that is full if that is it; those who lost theirs are
// bounded as well, and nobody is refused before they are; every place comes back.
func TestPlacesAreTakenWhereABoundIsMet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGate()
		var open []*place // whose connections have not ended
		subnet := rapid.IntRange(0, 6)
		for range rapid.IntRange(0, 1600).Draw(t, "steps") {
			if len(open) > 0 && rapid.IntRange(0, 19).Draw(t, "ends") == 0 {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "who")
				if rapid.Bool().Draw(t, "confirmed") {
					if was := !open[i].left; g.leave(open[i]) != was || g.leave(open[i]) {
						t.Fatal("it left twice, or not at all")
					}
				}
				g.end(open[i])
				g.end(open[i])
				open = append(open[:i], open[i+1:]...)
				continue
			}
			a := netip.AddrFrom4([4]byte{10, byte(subnet.Draw(t, "subnet")), 0, 1})
			full, crowded := g.total >= maxHalfOpen, g.subnets[subnetOf(a)] >= maxHalfOpenOfOne
			spent := g.displaced >= maxDisplaced
			p, over, how := g.admit(a, time.Time{})
			if over != nil && (!full && !crowded || crowded && subnetOf(over.address) != subnetOf(a) || !over.left || !over.lost) {
				t.Fatalf("%+v was taken, full: %v", over, full)
			}
			if (p == nil) != (spent && (full || crowded)) || p == nil && (how == endSubnetFull) != crowded {
				t.Fatalf("admitted: %v, %v", p != nil, how)
			}
			if p != nil {
				open = append(open, p)
			}
			if g.total > maxHalfOpen || g.subnets[subnetOf(a)] > maxHalfOpenOfOne || g.displaced > maxDisplaced || g.total != len(g.held) {
				t.Fatalf("%d half open, %d displaced", g.total, g.displaced)
			}
		}
		for _, p := range open {
			g.end(p)
		}
		if g.total != 0 || len(g.subnets) != 0 || len(g.held) != 0 || g.displaced != 0 {
			t.Fatalf("%d places did not come back", g.total)
		}
	})
}
