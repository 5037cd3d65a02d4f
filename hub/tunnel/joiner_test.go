package tunnel

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// partOf writes a part as it stands on the wire.
func partOf(number uint32, length, offset int, b []byte) []byte {
	return appendPart(nil, number, length, offset, b)
}

// Every size crosses every limit of a path: whole where it fits, else in two
// parts that fit, in either order.
func TestEverySizeCrossesEveryLimit(t *testing.T) {
	limits := []int{
		PartHeader + (MaxInnerMTU+1)/2, // the least that carries the largest packet
		1163,                           // QUIC packets of 1,200 bytes
		1168,                           // the direct lane at 1,200 bytes
		1195,                           // QUIC packets of 1,232 bytes
		1280, 1399, 1400, 1401, 1472, MaxInnerMTU,
	}
	var (
		splitter Splitter
		scratch  [MaxInnerMTU]byte
		bufs     [2][]byte
		joiner   = NewJoiner(MaxInnerMTU)
	)
	for _, limit := range limits {
		for size := MinPacket; size <= MaxInnerMTU; size++ {
			packet := testPacket(size, byte(limit))
			first, second, err := splitter.Split(packet, limit, &bufs)
			if err != nil {
				t.Fatalf("%d bytes over %d: %v", size, limit, err)
			}
			if (second == nil) != (size <= limit) || len(first) > limit || len(second) > limit {
				t.Fatalf("%d bytes over %d: parts of %d and %d", size, limit, len(first), len(second))
			}
			if second == nil {
				got, result := joiner.Take(first, &scratch, start)
				if result != JoinWhole || !bytes.Equal(got, packet) {
					t.Fatalf("%d bytes over %d: %v", size, limit, result)
				}
				continue
			}
			if size%2 == 1 {
				first, second = second, first
			}
			if got, result := joiner.Take(first, &scratch, start); result != JoinHeld || got != nil {
				t.Fatalf("%d bytes over %d: the first part: %v", size, limit, result)
			}
			got, result := joiner.Take(second, &scratch, start)
			if result != JoinJoined || !bytes.Equal(got, packet) {
				t.Fatalf("%d bytes over %d: %v", size, limit, result)
			}
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	var s Splitter
	for name, test := range map[string]struct {
		packet []byte
		limit  int
		want   error
	}{
		"nothing":             {nil, 1200, ErrNoPacket},
		"19 bytes":            {testPacket(19, 0), 1200, ErrNoPacket},
		"no ip":               {bytes.Repeat([]byte{partKind}, 100), 1200, ErrNoPacket},
		"too much for two":    {testPacket(1400, 0), 707, ErrPacketTooLong},
		"above the most":      {testPacket(1501, 0), 1200, ErrPacketTooLong},
		"a limit of nothing":  {testPacket(20, 0), 0, ErrPacketTooLong},
		"just enough for two": {testPacket(1400, 0), 708, nil},
	} {
		_, _, err := s.Split(test.packet, test.limit, &[2][]byte{})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
}

func TestJoinerRefusals(t *testing.T) {
	packet := testPacket(1000, 1)
	front := partOf(5, 1000, 0, packet[:600])
	back := partOf(5, 1000, 600, packet[600:])
	type step struct {
		datagram []byte
		want     JoinResult
	}
	tests := []struct {
		name  string
		steps []step
	}{
		{"nothing", []step{{nil, JoinEmpty}}},
		{"an unknown kind", []step{{[]byte{2, 1, 1}, JoinKind}, {[]byte{0x30}, JoinKind}, {[]byte{0x70}, JoinKind}, {[]byte{0x00}, JoinKind}}},
		{"version 6 is policy's affair", []step{{append([]byte{0x60}, make([]byte, 39)...), JoinWhole}}},
		{"19 bytes", []step{{packet[:19], JoinShort}}},
		{"the mtu", []step{{testPacket(1400, 1), JoinWhole}}},
		{"above the mtu", []step{{testPacket(1401, 1), JoinLong}}},
		{"half a header", []step{{front[:7], JoinPartShort}}},
		{"a header alone", []step{{front[:8], JoinPartShort}}},
		{"of a packet of 19 bytes", []step{{partOf(1, 19, 0, packet[:10]), JoinPartLength}}},
		{"of a packet of 20 bytes", []step{{partOf(1, 20, 0, packet[:10]), JoinHeld}, {partOf(1, 20, 10, packet[10:20]), JoinJoined}}},
		{"of a packet above the mtu", []step{{partOf(1, 1401, 0, packet[:10]), JoinPartLength}}},
		{"the whole packet in a part", []step{{partOf(1, 1000, 0, packet), JoinPartEnd}}},
		{"behind the end", []step{{partOf(1, 1000, 600, packet[600:999]), JoinPartEnd}, {partOf(1, 999, 600, packet[600:]), JoinPartEnd}}},
		{"from the middle to the middle", []step{{partOf(1, 1000, 300, packet[300:600]), JoinPartEnd}}},
		{"an offset behind the end", []step{{partOf(1, 1000, 65535, packet[:10]), JoinPartEnd}}},
		{"the front twice", []step{{front, JoinHeld}, {front, JoinPartDuplicate}, {back, JoinJoined}}},
		{"the back twice", []step{{back, JoinHeld}, {back, JoinPartDuplicate}, {front, JoinJoined}}},
		{"both again", []step{{back, JoinHeld}, {front, JoinJoined}, {back, JoinPartDuplicate}, {front, JoinPartDuplicate}}},
		{"a front of other bytes", []step{{front, JoinHeld}, {partOf(5, 1000, 0, packet[1:601]), JoinPartDuplicate}, {back, JoinJoined}}},
		{"of another length", []step{{front, JoinHeld}, {partOf(5, 999, 600, packet[600:999]), JoinPartConflict}, {back, JoinJoined}}},
		{"overlap", []step{{front, JoinHeld}, {partOf(5, 1000, 599, packet[599:]), JoinPartOverlap}, {back, JoinHeld}}},
		{"overlap from behind", []step{{back, JoinHeld}, {partOf(5, 1000, 0, packet[:601]), JoinPartOverlap}, {front, JoinHeld}}},
		{"gap", []step{{front, JoinHeld}, {partOf(5, 1000, 601, packet[601:]), JoinPartGap}, {front, JoinHeld}}},
		{"gap from behind", []step{{back, JoinHeld}, {partOf(5, 1000, 0, packet[:599]), JoinPartGap}}},
		{"an older packet's place", []step{{partOf(5+JoinSlots, 1000, 0, packet[:600]), JoinHeld}, {front, JoinPartOld}}},
		{"a joined packet's place", []step{{partOf(5+JoinSlots, 1000, 0, packet[:600]), JoinHeld}, {partOf(5+JoinSlots, 1000, 600, packet[600:]), JoinJoined}, {front, JoinPartOld}}},
		{"numbers begin anew", []step{{partOf(1<<24-JoinSlots, 1000, 0, packet[:600]), JoinHeld}, {partOf(0, 1000, 0, packet[:600]), JoinHeld}, {partOf(1<<24-JoinSlots, 1000, 600, packet[600:]), JoinPartOld}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			joiner := NewJoiner(DefaultInnerMTU)
			var scratch [MaxInnerMTU]byte
			for i, step := range test.steps {
				got, result := joiner.Take(step.datagram, &scratch, start)
				if result != step.want {
					t.Errorf("step %d: got %v, want %v", i+1, result, step.want)
				}
				if (got != nil) != (result == JoinWhole || result == JoinJoined) {
					t.Errorf("step %d: %v with a packet of %d bytes", i+1, result, len(got))
				}
			}
		})
	}
}

func TestJoinerForgetsInTime(t *testing.T) {
	packet := testPacket(1000, 1)
	front, back := partOf(5, 1000, 0, packet[:600]), partOf(5, 1000, 600, packet[600:])
	var scratch [MaxInnerMTU]byte
	take := func(j *Joiner, datagram []byte, after time.Duration) JoinResult {
		_, result := j.Take(datagram, &scratch, start.Add(after))
		return result
	}
	j := NewJoiner(DefaultInnerMTU)
	take(j, front, 0)
	if got := take(j, back, JoinLimit-1); got != JoinJoined {
		t.Errorf("just in time: %v", got)
	}
	j = NewJoiner(DefaultInnerMTU)
	take(j, front, 0)
	if got := take(j, back, JoinLimit); got != JoinHeld {
		t.Errorf("too late: %v", got)
	}
	if got := j.Stats(); got != (JoinStats{Expired: 1, Held: 400}) {
		t.Errorf("too late: %+v", got)
	}
	j.Expire(start.Add(2*JoinLimit - 1))
	if got := j.Stats(); got != (JoinStats{Expired: 1, Held: 400}) {
		t.Errorf("before its time: %+v", got)
	}
	j.Expire(start.Add(2 * JoinLimit))
	if got := j.Stats(); got != (JoinStats{Expired: 2}) {
		t.Errorf("after its time: %+v", got)
	}
	for _, s := range j.slots {
		if s.bytes != nil {
			t.Error("memory is kept for nothing")
		}
	}
	// A packet that was joined is known for as long, and is nothing that expires.
	j = NewJoiner(DefaultInnerMTU)
	take(j, front, 0)
	take(j, back, 0)
	if got := take(j, front, JoinLimit-1); got != JoinPartDuplicate {
		t.Errorf("again: %v", got)
	}
	if got := take(j, front, JoinLimit); got != JoinHeld {
		t.Errorf("again, much later: %v", got)
	}
	if got := j.Stats(); got.Expired != 0 {
		t.Errorf("a joined packet expired: %+v", got)
	}
}

// B170: however many parts one member sends, what is held is bounded.
func TestB170_JoinerIsBounded(t *testing.T) {
	j := NewJoiner(MaxInnerMTU)
	var scratch [MaxInnerMTU]byte
	packet := testPacket(MaxInnerMTU, 1)
	const sent = 10 * JoinSlots
	for n := range uint32(sent) {
		if _, result := j.Take(partOf(n, MaxInnerMTU, 0, packet[:MaxInnerMTU-1]), &scratch, start); result != JoinHeld {
			t.Fatal(result)
		}
	}
	want := JoinStats{Evicted: sent - JoinSlots, Held: JoinSlots * (MaxInnerMTU - 1)}
	if got := j.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want.Held >= 48<<10 {
		t.Errorf("%d bytes for a member", want.Held)
	}
}

// A network that loses, repeats and reorders datagrams, against a list of all
// that were sent: what comes out was sent, and comes out once; and if nothing
// was lost or strayed far, everything does.
func TestSplitAndJoinOverABadNetwork(t *testing.T) {
	type flight struct {
		datagram []byte
		at       int // its place in the order of arrival
	}
	rapid.Check(t, func(t *rapid.T) {
		var splitter Splitter
		splitter.number.Store(rapid.SampledFrom([]uint32{0, 1<<24 - 3, 1<<32 - 3}).Draw(t, "number"))
		mtu := rapid.IntRange(MinInnerMTU, MaxInnerMTU).Draw(t, "mtu")
		limit := rapid.IntRange(PartHeader+(mtu+1)/2, mtu).Draw(t, "limit")
		stray := rapid.SampledFrom([]int{0, 3, 2 * JoinSlots, 10 * JoinSlots}).Draw(t, "stray")
		loss := rapid.SampledFrom([]int{0, 10, 60}).Draw(t, "loss")
		var (
			flights []flight
			sent    []string
			lost    = map[string]bool{}
		)
		for i := range rapid.IntRange(1, 60).Draw(t, "packets") {
			packet := testPacket(rapid.IntRange(MinPacket, mtu).Draw(t, "size"), byte(i))
			packet[1], packet[2] = byte(i>>8), byte(i) // no two alike
			sent = append(sent, string(packet))
			first, second, err := splitter.Split(packet, limit, &[2][]byte{})
			if err != nil {
				t.Fatal(err)
			}
			for _, datagram := range [][]byte{first, second} {
				if datagram == nil {
					continue
				}
				if rapid.IntRange(0, 99).Draw(t, "lost") < loss {
					lost[string(packet)] = true
					continue
				}
				// Only parts are repeated: a whole packet that comes twice has no
				// mark to know it by, and is a duplicate of IP.
				copies := 1
				if second != nil {
					copies += rapid.IntRange(0, 1).Draw(t, "copies")
				}
				for range copies {
					flights = append(flights, flight{datagram, len(flights) + rapid.IntRange(0, stray).Draw(t, "stray")})
				}
			}
		}
		for i := range flights { // by place, stable
			for k := i; k > 0 && flights[k-1].at > flights[k].at; k-- {
				flights[k-1], flights[k] = flights[k], flights[k-1]
			}
		}
		joiner := NewJoiner(mtu)
		var scratch [MaxInnerMTU]byte
		came := map[string]int{}
		for _, f := range flights {
			packet, result := joiner.Take(f.datagram, &scratch, start)
			switch result {
			case JoinWhole, JoinJoined:
				came[string(packet)]++
			case JoinHeld, JoinPartDuplicate, JoinPartOld:
			default:
				t.Fatalf("a datagram that was sent so: %v", result)
			}
			if held := joiner.Stats().Held; held > JoinSlots*(mtu-1) {
				t.Fatalf("%d bytes held", held)
			}
		}
		for packet, times := range came {
			known := false
			for _, s := range sent {
				known = known || s == packet
			}
			if !known {
				t.Fatalf("a packet of %d bytes that nobody sent", len(packet))
			}
			// Far behind, a packet's parts are no longer known.
			if times > 1 && stray < JoinSlots {
				t.Fatalf("a packet of %d bytes came %d times", len(packet), times)
			}
		}
		if stray < JoinSlots {
			for _, packet := range sent {
				if !lost[packet] && came[packet] == 0 {
					t.Fatalf("a packet of %d bytes, of which nothing was lost, did not come", len(packet))
				}
			}
		}
	})
}

// Two workers may each receive a part of one packet.
func TestJoinerFromManyGoroutines(t *testing.T) {
	const workers, each = 4, 200
	joiner := NewJoiner(MaxInnerMTU)
	var joining sync.WaitGroup
	for w := range workers {
		joining.Go(func() {
			var scratch [MaxInnerMTU]byte
			for i := range each {
				packet := testPacket(1000, byte(i))
				number := uint32(w + workers*i)
				joiner.Take(partOf(number, 1000, 0, packet[:500]), &scratch, start)
				got, result := joiner.Take(partOf(number, 1000, 500, packet[500:]), &scratch, start)
				if result == JoinJoined && !bytes.Equal(got, packet) {
					t.Errorf("worker %d got another packet than it gave", w)
				}
			}
		})
	}
	joining.Wait()
}

func TestSplitAndJoinAllocateNothing(t *testing.T) {
	var (
		splitter Splitter
		scratch  [MaxInnerMTU]byte
		bufs     [2][]byte
		joiner   = NewJoiner(DefaultInnerMTU)
		packet   = testPacket(DefaultInnerMTU, 1)
	)
	cross := func() {
		first, second, err := splitter.Split(packet, 1195, &bufs)
		if err != nil {
			t.Fatal(err)
		}
		joiner.Take(first, &scratch, start)
		if _, result := joiner.Take(second, &scratch, start); result != JoinJoined {
			t.Fatal(result)
		}
	}
	for range JoinSlots {
		cross() // each place makes its memory once
	}
	if allocations := testing.AllocsPerRun(100, cross); allocations != 0 {
		t.Errorf("%v allocations a packet", allocations)
	}
}
