package node

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/hub/tunnel"
)

// lane is a QUIC connection that takes datagrams of a size that changes.
type lane struct {
	limit  int
	shrink int // the limit after the next datagram, 0 for the same
	err    error
	sent   [][]byte
	keep   bool
}

func (l *lane) SendDatagram(b []byte) error {
	switch {
	case l.err != nil:
		return l.err
	case len(b) > l.limit:
		return &quic.DatagramTooLargeError{MaxDatagramPayloadSize: int64(l.limit)}
	}
	if l.keep {
		l.sent = append(l.sent, bytes.Clone(b))
	}
	if l.shrink > 0 {
		l.limit, l.shrink = l.shrink, 0
	}
	return nil
}

func ipv4(size int) []byte {
	p := bytes.Repeat([]byte{7}, size)
	p[0] = 0x45
	return p
}

func TestSenderFitsThePath(t *testing.T) {
	tests := []struct {
		name    string
		packet  int
		believe int64 // what the sender believes
		lane    lane
		sizes   []int
		alive   bool
		dropped Drop // dropEnd for none
		limit   int64
	}{
		{"whole", 1195, 1195, lane{limit: 1195}, []int{1195}, true, dropEnd, 1195},
		{"two parts", 1196, 1195, lane{limit: 1195}, []int{606, 606}, true, dropEnd, 1195},
		{"the path is smaller than believed", 1400, 1400, lane{limit: 1195}, []int{708, 708}, true, dropEnd, 1195},
		{"it shrinks between the parts", 1400, 1195, lane{limit: 1195, shrink: 600}, []int{708}, true, DropOutPath, 600},
		{"it takes not even parts", 1400, 1195, lane{limit: 300}, nil, true, DropOutPath, 300},
		{"the connection is gone", 1400, 1195, lane{limit: 1195, err: errors.New("gone")}, nil, false, DropOutLost, 1195},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var limit atomic.Int64
			limit.Store(test.believe)
			var count traffic
			test.lane.keep = true
			s := sender{lane: &test.lane, limit: &limit, splitter: new(tunnel.Splitter), traffic: &count}
			if alive := s.send(ipv4(test.packet)); alive != test.alive {
				t.Errorf("alive %v", alive)
			}
			var sizes []int
			for _, b := range test.lane.sent {
				sizes = append(sizes, len(b))
			}
			if !slices.Equal(sizes, test.sizes) || limit.Load() != test.limit {
				t.Errorf("sent %v with limit %d, want %v with %d", sizes, limit.Load(), test.sizes, test.limit)
			}
			for d := range dropEnd {
				want := uint64(0)
				if d == test.dropped {
					want = 1
				}
				if got := count.dropped[d].Load(); got != want {
					t.Errorf("%v: %d, want %d", d, got, want)
				}
			}
			if sent := count.outPackets.Load(); (sent == 1) != (test.dropped == dropEnd) {
				t.Errorf("%d packets were sent", sent)
			}
		})
	}
}

type deaf struct{ Device }

func (deaf) BatchSize() int { return 1 }

func bareClient(t *testing.T) *Client {
	t.Helper()
	return &Client{device: deaf{}, out: newQueue(maxQueued), in: newQueue(maxQueued)}
}

// Design §5.2: nothing of ours is allocated for a packet, in either direction.
func TestPacketsAllocateNothing(t *testing.T) {
	c := bareClient(t)
	c.mtu.Store(tunnel.DefaultInnerMTU)
	var limit atomic.Int64
	limit.Store(1195)
	s := sender{lane: &lane{limit: 1195}, limit: &limit, splitter: new(tunnel.Splitter), traffic: &c.traffic}
	packet, buf := ipv4(1400), make([]byte, tunnel.MaxInnerMTU)
	out := func() {
		c.offer(packet)
		s.send(buf[:c.out.pop(buf)])
	}
	if got := testing.AllocsPerRun(1000, out); got != 0 {
		t.Errorf("%v allocations a packet on the way out", got)
	}
	joiner := tunnel.NewJoiner(tunnel.DefaultInnerMTU)
	var scratch [tunnel.MaxInnerMTU]byte
	now := time.Now()
	in := func() {
		c.take(joiner, packet, &scratch, now)
		c.in.pop(buf)
	}
	if got := testing.AllocsPerRun(1000, in); got != 0 {
		t.Errorf("%v allocations a packet on the way in", got)
	}
	if sent := c.traffic.outSplit.Load(); sent != 1001 {
		t.Errorf("%d packets went in two parts, want 1001", sent)
	}
}

func TestWhatIsNotOffered(t *testing.T) {
	six := ipv4(100)
	six[0] = 0x60
	tests := []struct {
		mtu    int64
		packet []byte
		want   Drop
	}{
		{0, ipv4(100), DropOutNoTunnel},
		{1400, ipv4(1401), DropOutLength},
		{1400, ipv4(19), DropOutLength},
		{1400, nil, DropOutLength},
		{1400, six, DropOutNotIPv4},
		{1400, ipv4(1400), dropEnd},
		{1400, ipv4(20), dropEnd},
	}
	for i, test := range tests {
		c := bareClient(t)
		c.mtu.Store(test.mtu)
		c.offer(test.packet)
		if test.want == dropEnd {
			if c.out.bytes() != len(test.packet)+lengthSize {
				t.Errorf("test %d: nothing waits", i)
			}
		} else if c.traffic.dropped[test.want].Load() != 1 || c.out.bytes() != 0 {
			t.Errorf("test %d: %v", i, c.traffic.read().Dropped)
		}
	}
}

// Both queues are bounded in bytes, and what finds no room is counted.
func TestQueuesAreBounded(t *testing.T) {
	c := bareClient(t)
	c.mtu.Store(tunnel.DefaultInnerMTU)
	joiner := tunnel.NewJoiner(tunnel.DefaultInnerMTU)
	var scratch [tunnel.MaxInnerMTU]byte
	packet := ipv4(1400)
	for range 1000 {
		c.offer(packet)
		c.take(joiner, packet, &scratch, time.Now())
	}
	room := maxQueued / (1400 + lengthSize)
	s := c.traffic.read()
	if want := uint64(1000 - room); s.Dropped["out-queue-full"] != want || s.Dropped["in-queue-full"] != want {
		t.Errorf("dropped %v, want %d each", s.Dropped, want)
	}
	if c.out.bytes() > maxQueued || c.in.bytes() > maxQueued || c.out.bytes() < maxQueued-1402 {
		t.Errorf("%d and %d bytes wait", c.out.bytes(), c.in.bytes())
	}
}

func TestRefusedDatagramsAreCountedByName(t *testing.T) {
	c := bareClient(t)
	joiner := tunnel.NewJoiner(tunnel.DefaultInnerMTU)
	var scratch [tunnel.MaxInnerMTU]byte
	for _, b := range [][]byte{nil, {0xff}, ipv4(5), ipv4(1401), {1, 2}} {
		c.take(joiner, b, &scratch, time.Now())
	}
	got := c.traffic.read().Refused
	for _, name := range []string{"empty", "kind", "short", "long", "part-short"} {
		if got[name] != 1 {
			t.Errorf("%s: %d, want 1", name, got[name])
		}
	}
	if len(got) != len(tunnel.JoinRefusals()) || c.in.bytes() != 0 {
		t.Errorf("%d names, %d bytes wait", len(got), c.in.bytes())
	}
}

func TestEveryDropHasAName(t *testing.T) {
	seen := map[string]bool{}
	for d := range dropEnd {
		if name := d.String(); name == "" || seen[name] {
			t.Errorf("drop %d is %q", d, name)
		} else {
			seen[name] = true
		}
	}
}
