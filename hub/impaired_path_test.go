package hub

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	realnode "serve.zone/relay/hub/node"
	"serve.zone/relay/hub/tunnel"
)

// R61: a path that loses, repeats and reorders a lot keeps nobody out. However many
// attempts that takes, what the hub counted fits together, and each member has one session
// when the path is good again.
func TestR61_ABadPathKeepsNobodyOut(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { badPath(t, seed) })
		})
	}
}

func badPath(t *testing.T, seed uint64) {
	r := newRig(t)
	r.cloudly().must(netOf(1, 2, 0, 1, 1, 0))
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	r.net.decide(func(flight) []time.Duration {
		mu.Lock()
		defer mu.Unlock()
		late := func() time.Duration { return time.Duration(random.Int64N(int64(200 * time.Millisecond))) }
		switch at := random.Float64(); {
		case at < 0.2:
			return nil
		case at < 0.3:
			return []time.Duration{late(), late()}
		default:
			return []time.Duration{late()}
		}
	})
	a, b := r.runs(0), r.runs(1)
	for _, d := range []*dialler{a, b} {
		d.comesUp(time.Minute)
	}
	for _, size := range []int{1100, 1400} {
		a.reaches(b, size, 30*time.Second)
		b.reaches(a, size, 30*time.Second)
	}
	r.net.decide(nil)
	time.Sleep(handshakeLimit)
	for _, d := range []*dialler{a, b} {
		d.comesUp(time.Minute)
	}
	a.reaches(b, 1400, time.Second)
	b.reaches(a, 1400, time.Second)
	sessions := r.member(0).Sessions + r.member(1).Sessions
	tunnels := a.client.Status().Tunnels + b.client.Status().Tunnels
	if confirmed := r.handshakes(endConfirmed); sessions != confirmed || tunnels < sessions || r.connected() != 2 {
		t.Errorf("%d handshakes were confirmed, %d sessions, %d tunnels, %d stand", confirmed, sessions, tunnels, r.connected())
	}
	r.until("no connection is half open", handshakeLimit, func() bool { return r.status().HalfOpen == 0 })
}

// A path whose datagrams end where one of 1,280 bytes ends them carries packets of every
// size, both ways, and none is lost.
func TestEverySizeCrossesASmallPath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const pathMTU, headers = 1280, 28 // of IPv4 and UDP
		r := newRig(t)
		r.cloudly().must(netOf(1, 2, 0, 1, 1, 0))
		r.net.watch(func(_, _ netip.AddrPort, b []byte) bool { return len(b) > pathMTU-headers })
		a, b := r.runs(0), r.runs(1)
		a.comesUp(time.Second)
		b.comesUp(time.Second)
		for _, way := range [][2]*dialler{{a, b}, {b, a}} {
			var want, got []int
			for size := 24; size <= tunnel.DefaultInnerMTU; size++ {
				way[0].send(way[1], size)
				want = append(want, size)
				time.Sleep(5 * time.Millisecond)
				synctest.Wait()
				got = append(got, way[1].take()...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("node %d to node %d: %d of %d sizes: %v", way[0].i, way[1].i, len(got), len(want), got)
			}
		}
		for _, d := range []*dialler{a, b} {
			if s := d.client.Status(); s.Traffic.OutSplit < 100 || s.Traffic.InJoined < 100 || s.Tunnels != 1 {
				t.Errorf("node %d: %+v", d.i, s)
			}
			if m := r.member(d.i); m.ToDropped != 0 || len(m.Dropped) != 0 {
				t.Errorf("node %d: %+v", d.i, m)
			}
		}
	})
}

// B190, B193: a NAT that gives a member another port, or the machine another address, costs
// no session: the hub finds it there with its next packet, which under silence is its next
// keepalive, also when the first datagrams to the new place are lost.
func TestB190_B193_AMemberRoams(t *testing.T) {
	for name, test := range map[string]struct {
		idle bool
		lost int // datagrams to the new place
	}{
		"under traffic": {}, "idle": {idle: true},
		"under traffic, with loss": {lost: 2}, "idle, with loss": {idle: true, lost: 2},
	} {
		t.Run(name, func(t *testing.T) { bubble(t, func(t *testing.T) { roam(t, test.idle, test.lost) }) })
	}
}

func roam(t *testing.T, idle bool, lost int) {
	r := newRig(t)
	r.cloudly().must(netOf(1, 2, 0, 1, 1, 0))
	a, b := r.runs(0), r.runs(1)
	a.comesUp(time.Second)
	b.comesUp(time.Second)
	a.reaches(b, 1400, time.Second)
	since := r.member(0).Session.Since
	for move := range 5 {
		as := netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(9 + move/2)}), uint16(5000+move))
		at := a.socket()
		var mu sync.Mutex
		left := lost
		r.net.decide(func(f flight) []time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if f.to == at && left > 0 {
				left--
				return nil
			}
			return []time.Duration{atOnce}
		})
		moved := time.Now()
		r.net.rebind(at, as)
		limit := 2 * time.Second
		if idle {
			limit += 10 * time.Second
		} else {
			a.reaches(b, 1400, limit)
		}
		r.until("the hub sees the new place", limit, func() bool { return r.member(0).Session.Address == as.String() })
		// docs/tunnel.md: keepalives are 10 s apart.
		if idle && time.Since(moved) < 500*time.Millisecond {
			t.Fatal("it was not idle: a wrong test")
		}
		b.reaches(a, 1400, time.Second)
		mu.Lock()
		if left > 0 {
			t.Fatalf("%d of %d datagrams were lost: a wrong test", lost-left, lost)
		}
		mu.Unlock()
	}
	r.net.decide(nil)
	time.Sleep(tunnel.HandshakeLimit)
	a.reaches(b, 1400, time.Second)
	r.oneSessionEach(a, b)
	if m := r.member(0); m.Session.Since != since {
		t.Errorf("the session is one since %v, not since %v", m.Session.Since, since)
	}
	if events := r.eventsOf(MemberSuperseded, MemberDisconnected, DuplicateKey); len(events) != 0 {
		t.Errorf("%v", events)
	}
}

// Whoever copies a member's datagrams and sends them from elsewhere, sooner than they come
// by themselves, does not draw the member's packets there: the address is not theirs to
// prove (RFC 9000 §9.3.1).
func TestACopyFromElsewhereMovesNoSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2, 0, 1, 1, 0))
		a, b := r.runs(0), r.runs(1)
		a.comesUp(time.Second)
		b.comesUp(time.Second)
		at := a.socket()
		place := r.member(0).Session.Address
		thief := netip.MustParseAddrPort("203.0.113.66:666")
		var mu sync.Mutex
		copies, drawn := 0, 0
		r.net.watch(func(from, to netip.AddrPort, datagram []byte) bool {
			mu.Lock()
			defer mu.Unlock()
			if to == thief {
				drawn++
			}
			if from == at {
				copies++
				r.net.forge(thief, to, datagram)
			}
			return false
		})
		r.net.decide(func(f flight) []time.Duration {
			if f.from == at {
				return []time.Duration{20 * time.Millisecond}
			}
			return []time.Duration{atOnce}
		})
		for range 200 {
			a.send(b, 100)
			b.send(a, 1400)
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			a.take()
			b.take()
		}
		settle()
		a.take()
		b.take()
		if len(a.got) != 200 || len(b.got) != 200 {
			t.Errorf("%d and %d of 200 packets came", len(a.got), len(b.got))
		}
		if m := r.member(0); m.Session.Address != place || m.Sessions != 1 {
			t.Errorf("the session is at %v: %+v", m.Session.Address, m)
		}
		mu.Lock()
		defer mu.Unlock()
		// What goes there are the challenges of one path, with more and more time between.
		if copies < 200 || drawn == 0 || drawn > 20 {
			t.Errorf("%d datagrams were copied, %d went there", copies, drawn)
		}
	})
}

// A path that is dark for longer than a connection lives costs one session and no more: the
// member is shown as gone, and comes back with the next attempt.
func TestAMemberReturnsAfterABlackout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2, 0, 1, 1, 0))
		a, b := r.runs(0), r.runs(1)
		a.comesUp(time.Second)
		b.comesUp(time.Second)
		a.reaches(b, 1400, time.Second)
		r.net.decide(func(f flight) []time.Duration {
			if f.from.Addr() == r.machine(0) || f.to.Addr() == r.machine(0) {
				return nil
			}
			return []time.Duration{atOnce}
		})
		r.until("the hub has given it up", 31*time.Second, func() bool { return r.member(0).Session == nil })
		time.Sleep(5 * time.Minute)
		r.net.decide(nil)
		// The node dials for ten seconds, and waits for thirty at most between.
		a.comesUp(45 * time.Second)
		a.reaches(b, 1400, time.Second)
		b.reaches(a, 1400, time.Second)
		if s := a.client.Status(); s.Tunnels != 2 || s.Endings[realnode.Silent] != 1 {
			t.Errorf("%d tunnels, endings %v", s.Tunnels, s.Endings)
		}
		if m := r.member(0); m.Sessions != 2 || m.Alternating || r.handshakes(endConfirmed) != 3 {
			t.Errorf("%+v, %d handshakes", m, r.handshakes(endConfirmed))
		}
		if m := r.member(1); m.Sessions != 1 {
			t.Errorf("it cost another one its session: %+v", m)
		}
		want := []string{"hub-member-disconnected node=node-000 reason=silent"}
		for _, e := range r.eventsOf(MemberDisconnected) {
			if len(want) == 0 || len(e) < len(want[0]) || e[:len(want[0])] != want[0] {
				t.Errorf("%v", e)
			}
			want = nil
		}
	})
}
