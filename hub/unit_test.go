package hub

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// The queue is a bounded list, whatever is done to it.
func TestQueueIsABoundedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []int
		bytes := 0
		for n := range rapid.IntRange(1, 3000).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "do") {
			case 0, 1:
				e, ok := q.pop()
				if ok != (len(want) > 0) || ok && int(e.epoch) != want[0] {
					t.Fatalf("popped %d, %v; want %v", e.epoch, ok, want)
				}
				if ok {
					want, bytes = want[1:], bytes-len(e.packet)-entryCost
				}
			case 2:
				q.trim()
			default:
				p := make([]byte, rapid.IntRange(20, 1500).Draw(t, "length"))
				fits := bytes+len(p)+entryCost <= maxQueued
				if ok := q.push(entry{packet: p, epoch: uint64(n)}, maxQueued); ok != fits {
					t.Fatalf("pushed: %v with %d bytes", ok, bytes)
				}
				if fits {
					want, bytes = append(want, n), bytes+len(p)+entryCost
				}
			}
			if q.bytes != bytes || q.count != len(want) {
				t.Fatalf("%d entries, %d bytes; want %d, %d", q.count, q.bytes, len(want), bytes)
			}
		}
	})
}

func TestSwitcher(t *testing.T) {
	const takes, held, told, gone = "takes", "held", "takes, told", "takes from one that is gone"
	for _, test := range []struct {
		name string
		at   []float64 // seconds; below 0 where the older end does not live
		want []string
	}{
		{"far apart", []float64{0, 600.1, 1200.2}, []string{takes, takes, takes}},
		{"the second within ten", []float64{0, 10}, []string{takes, told}},
		{"held to one in five", []float64{0, 1, 2, 5.9, 6}, []string{takes, told, held, held, takes}},
		{"for ever", []float64{0, 1, 6, 11, 12, 300, 599}, []string{takes, told, takes, takes, held, takes, takes}},
		{"the third within ten minutes", []float64{0, 10.1, 20.2}, []string{takes, takes, told}},
		{"slow ones", []float64{0, 22, 44, 66, 70, 360, 959}, []string{takes, takes, told, takes, held, takes, takes}},
		{"two in ten minutes", []float64{0, 10.1, 610.2, 1210.3}, []string{takes, takes, takes, takes}},
		{"one that stands is gone", []float64{0, 22, 44, 66, -70, 80}, []string{takes, takes, told, takes, gone, takes}},
		{"told again after a pause", []float64{0, 1, 601.1, 602}, []string{takes, told, takes, told}},
		{"what is held does not count", []float64{0, 1, 2, 3, 4, 11.1, 12}, []string{takes, told, held, held, held, takes, held}},
		{"the older one is always gone", []float64{0, -1, -2, -3, -20, -21, -22, -40, -60, -80, -100}, []string{takes, gone, gone, gone, takes, gone, gone, gone, gone, gone, gone}},
	} {
		var w switcher
		var got []string
		for _, at := range test.at {
			now := time.Duration(math.Abs(at) * float64(time.Second))
			suspected := w.suspects(now)
			ok, duplicate := w.attempt(now, at >= 0)
			switch {
			case duplicate && ok && w.alternate(now):
				got = append(got, told)
			case ok && at < 0 && suspected:
				got = append(got, gone)
			case ok && !duplicate:
				got = append(got, takes)
			case !ok && !duplicate:
				got = append(got, held)
			default:
				got = append(got, "told and held")
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// tableOf compiles a network.
func tableOf(t testing.TB, prev *policy.Table, revision int64, pairs ...int) *policy.Table {
	t.Helper()
	x := netOf(revision, 3, pairs...)
	table, err := policy.Compile(prev, x, network.Instant{Wall: x.Nodes[0].ExpiresAt - 1000})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// A fence is needed for as long as QUIC may hold what a table forbids, and no longer.
func TestFenceIsAsFarAsNeeded(t *testing.T) {
	first := tableOf(t, policy.Empty(nil), 1, 0, 1, 2, 1)
	next := tableOf(t, first, 2, 2, 1)
	now := network.Instant{Wall: netOf(1, 3).Nodes[0].ExpiresAt - 1000}
	var ids []policy.ID
	for m := range first.Members() {
		ids = append(ids, m.ID)
	}
	wayFrom := func(i int) way {
		e := entry{packet: packetOf(ip(i), ip(1), 60, 0), from: &seat{id: ids[i]}}
		return wayOf(&e)
	}
	var h handed
	if h.fence(next, ids[1], now) != 0 {
		t.Error("nothing was handed over and a fence stands")
	}
	h.pending = wayFrom(0)
	if got := h.fence(next, ids[1], now); got != mostParts {
		t.Errorf("a pending packet: fence %d", got)
	}
	if h.fence(first, ids[1], now) != 0 || h.fence(first, ids[2], now) == 0 {
		t.Error("the table in force is not the one that decides")
	}
	h.took(2)
	for n := range 2 * lookedBack { // QUIC's writer finishes none
		want := uint64(2)
		if n > lookedBack {
			want = uint64(2 + n - lookedBack) // the last one that is forgotten
		}
		if got := h.fence(next, ids[1], now); got != want {
			t.Fatalf("after %d more: fence %d, want %d", n, got, want)
		}
		h.pending = wayFrom(2)
		h.took(1)
	}
	h.wrote(writerDepth, 0)
	if got := h.fence(next, ids[1], now); got != 2+lookedBack {
		t.Errorf("what was written before is believed to be gone: fence %d", got)
	}
	for n := range writerDepth {
		if got := h.fence(next, ids[1], now); got == 0 {
			t.Fatalf("QUIC has finished %d more: no fence", n)
		}
		h.wrote(writerDepth+uint64(n)+1, 0)
	}
	if got := h.fence(next, ids[1], now); got != 0 {
		t.Errorf("QUIC has finished all that it had: fence %d", got)
	}
	if h.fence(policy.Empty(next), ids[1], now) == 0 {
		t.Error("an empty table lets everything pass")
	}
}

// A fence that stands is passed by what QUIC takes and writes from then on, however long
// it did neither before.
func TestAFenceIsPassedByWhatFollows(t *testing.T) {
	var h handed
	h.took(100)
	const fence = 100
	finished := uint64(3)
	h.wrote(finished, fence)
	h.took(quicDepth - 1)
	h.wrote(finished, fence)
	if h.marked == h.added {
		t.Error("marked while QUIC may have queued the datagram")
	}
	h.took(1)
	for range writerDepth {
		h.wrote(finished, fence)
		if h.gone >= fence {
			t.Fatalf("gone: %d, with %d finished", h.gone, finished)
		}
		finished++
	}
	h.wrote(finished, fence)
	if h.gone != fence {
		t.Errorf("gone: %d", h.gone)
	}
}

// bare is a hub without a socket, with sessions that have no connection.
func bare(t testing.TB, pairs ...int) (*Hub, []*session) {
	t.Helper()
	wall := time.UnixMilli(netOf(1, 1).Nodes[0].ExpiresAt - 1000)
	h, err := New(Config{
		Address: addrPort(hubAddress), ListenPacket: newPacketNet().ListenPacket, Key: keyOf(1),
		Call: noCall, Wall: func() time.Time { return wall },
	})
	if err != nil {
		t.Fatal(err)
	}
	h.enforce(tableOf(t, h.table.Load(), 1, pairs...), endedWithdrawn)
	var all []*session
	for m := range h.table.Load().Members() {
		s := &session{hub: h, seat: h.seats[m.ID.Slot()], id: m.ID, key: m.Key,
			joiner: tunnel.NewJoiner(tunnel.DefaultInnerMTU), ended: make(chan struct{})}
		s.out.wake = make(chan struct{}, 1)
		h.routes[m.ID.Slot()].Store(s)
		all = append(all, s)
	}
	return h, all
}

// Our part of a packet's way allocates nothing: taking, joining, judging, queueing,
// judging again, cutting.
func TestPacketsAllocateNothing(t *testing.T) {
	_, s := bare(t, 0, 1)
	now := time.Now()
	bufs := [2][]byte{make([]byte, 0, tunnel.MaxInnerMTU), make([]byte, 0, tunnel.MaxInnerMTU)}
	packet := packetOf(ip(0), ip(1), 1400, 1)
	var source tunnel.Splitter
	for _, whole := range []bool{true, false} {
		cut := [2][]byte{make([]byte, 0, 1500), make([]byte, 0, 1500)}
		n := testing.AllocsPerRun(1000, func() {
			if whole {
				s[0].receive(packet, now)
			} else {
				first, second, _ := source.Split(packet, 1200, &cut)
				s[0].receive(first, now)
				s[0].receive(second, now)
			}
			e, w := s[1].take(0)
			if w != carry || len(e.packet) != 1400 {
				t.Fatalf("took %v, %d bytes", w, len(e.packet))
			}
			if _, _, err := s[1].splitter.Split(e.packet, 1200, &bufs); err != nil {
				t.Fatal(err)
			}
			e.release()
			if _, w := s[1].take(2); w != rest {
				t.Fatalf("took %v", w)
			}
		})
		if n != 0 {
			t.Errorf("whole %v: %v allocations a packet", whole, n)
		}
	}
}

// Packets that were joined wait in memory of their own.
func TestJoinedPacketsThatWaitStayWhatTheyWere(t *testing.T) {
	_, s := bare(t, 0, 1)
	var source tunnel.Splitter
	for n := range 3 {
		first, second, err := source.Split(packetOf(ip(0), ip(1), 1400, n), 1200, &[2][]byte{})
		if err != nil {
			t.Fatal(err)
		}
		s[0].receive(second, time.Now())
		s[0].receive(first, time.Now())
	}
	for n := range 3 {
		e, _ := s[1].take(0)
		if got := numbers([][]byte{e.packet}); got[0] != n || e.own == nil {
			t.Errorf("packet %d became %v", n, got)
		}
	}
}

// What waits is judged by the network in force when it leaves, and by the clocks.
func TestWhatWaitsIsJudgedAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, h *Hub)
		want   string
	}{
		{"nothing changed", func(*testing.T, *Hub) {}, "carried"},
		{"another network that grants it", func(t *testing.T, h *Hub) { h.enforce(tableOf(t, h.table.Load(), 2, 0, 1), 0) }, "carried"},
		{"no grant", func(t *testing.T, h *Hub) { h.enforce(tableOf(t, h.table.Load(), 2, 1, 0), 0) }, "no-grant"},
		{"no network", func(t *testing.T, h *Hub) { h.enforce(policy.Empty(h.table.Load()), 0) }, "sender-unknown"},
		{"their time is over", func(_ *testing.T, h *Hub) { h.start = h.start.Add(-time.Hour) }, "sender-expired"},
		{"the member's time is over", func(_ *testing.T, h *Hub) {
			h.table.Load().Member(h.routes[1].Load().id).Deadline.Wall = 0
		}, "destination-expired"},
		{"custody may end", func(_ *testing.T, h *Hub) { h.resume.Store(h.now().Mono + 1000) }, "custody-suspended"},
		{"the session is over", func(_ *testing.T, h *Hub) { h.routes[1].Load().out.close() }, "destination-offline"},
	} {
		h, s := bare(t, 0, 1)
		s[0].receive(packetOf(ip(0), ip(1), 100, 1), time.Now())
		test.change(t, h)
		got := "carried"
		if e, w := s[1].take(0); w != carry || e.packet == nil {
			got = "nothing"
			for why := range policy.Reasons {
				if h.metrics.drops.Of(why).Value() == 1 {
					got = why.String()
				}
			}
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// A place that is used again belongs to nobody whose membership is over.
func TestAPlaceThatIsUsedAgain(t *testing.T) {
	h, s := bare(t, 0, 1)
	x := without(netOf(2, 4, 0, 3), 1, 2)
	x.Revision = 2
	next, err := policy.Compile(h.table.Load(), x, network.Instant{Wall: x.Nodes[0].ExpiresAt - 1000})
	if err != nil {
		t.Fatal(err)
	}
	var fresh policy.ID
	for m := range next.Members() {
		if m.NodeID == "node-003" {
			fresh = m.ID
		}
	}
	if fresh.Slot() != s[1].id.Slot() {
		t.Fatalf("place %d is not used again", s[1].id.Slot())
	}
	h.table.Store(next) // the session has not been cut yet
	s[0].receive(packetOf(ip(0), ip(3), 100, 1), time.Now())
	if s[1].out.queue.count != 0 || h.metrics.drops.Of(policy.DestinationOffline).Value() != 1 {
		t.Error("a packet went to the member that had the place before")
	}
}

func TestEveryEndHasAName(t *testing.T) {
	for e := range handshakeEnds {
		if e.String() == "" || e.code().String() == "unknown" {
			t.Errorf("handshake end %d is called %q", e, e)
		}
	}
	for _, e := range []fmt.Stringer{sessionEnds - 1, networkEnds - 1, origins - 1} {
		if e.String() == "" {
			t.Errorf("%T has no name", e)
		}
	}
	for _, e := range []handshakeEnd{endUnknown, endWithdrawn, endExpired, endNoNetwork} {
		if e.code() != tunnel.CloseNotAdmitted {
			t.Errorf("%v is told as %v", e, e.code())
		}
	}
}
