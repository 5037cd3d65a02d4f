package impair

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"
)

// patience bounds every wait for what comes at once. It is no expectation.
const patience = 20 * time.Second

// end is a client, or the upstream.
type end struct {
	t testing.TB
	*net.UDPConn
}

func newEnd(t testing.TB) *end {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return &end{t, socket}
}

func (e *end) addr() netip.AddrPort { return addrOf(e.LocalAddr()) }

// send sends a datagram that begins with a number.
func (e *end) send(to netip.AddrPort, number uint32, length int) {
	e.t.Helper()
	b := make([]byte, max(length, 4))
	binary.BigEndian.PutUint32(b, number)
	if _, err := e.WriteToUDPAddrPort(b, to); err != nil {
		e.t.Fatal(err)
	}
}

// next returns the next datagram.
func (e *end) next() (b []byte, from netip.AddrPort) {
	e.t.Helper()
	b = make([]byte, maxDatagram)
	e.SetReadDeadline(time.Now().Add(patience))
	n, from, err := e.ReadFromUDPAddrPort(b)
	if err != nil {
		e.t.Fatal(err)
	}
	return b[:n], from
}

func (e *end) number() (uint32, netip.AddrPort) {
	e.t.Helper()
	b, from := e.next()
	return binary.BigEndian.Uint32(b), from
}

// nothing fails the test if something has come.
func (e *end) nothing() {
	e.t.Helper()
	e.SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, from, err := e.ReadFromUDPAddrPort(make([]byte, maxDatagram)); !errors.Is(err, os.ErrDeadlineExceeded) {
		e.t.Errorf("%d bytes came from %v, %v", n, from, err)
	}
}

// newProxy makes a proxy in front of an upstream that does nothing by itself.
func newProxy(t testing.TB, change ...func(*Config)) (p *Proxy, client, upstream *end) {
	t.Helper()
	client, upstream = newEnd(t), newEnd(t)
	c := Config{Upstream: upstream.addr(), Seed: 42}
	for _, f := range change {
		f(&c)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, client, upstream
}

// eventually waits until what a proxy has counted fits.
func eventually(t testing.TB, p *Proxy, what string, fits func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !fits(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, p)
		}
	}
}

// balance reports whether every datagram is accounted for.
func (c Counts) balance() bool {
	sum := c.Passed + uint64(c.Waiting)
	for _, n := range c.Dropped {
		sum += n
	}
	return sum == c.Came+c.Duplicated
}

// A path that does nothing carries everything, in both directions, in order.
func TestAPathThatDoesNothing(t *testing.T) {
	p, client, upstream := newProxy(t)
	for n := range uint32(200) {
		client.send(p.Addr(), n, int(4+7*n))
		got, from := upstream.next()
		if binary.BigEndian.Uint32(got) != n || len(got) != int(4+7*n) {
			t.Fatalf("%d bytes, number %x, at %d", len(got), got[:4], n)
		}
		upstream.send(from, n, 4)
		if back, from := client.number(); back != n || from != p.Addr() {
			t.Fatalf("%d came back from %v", back, from)
		}
	}
	for _, d := range []Direction{ToUpstream, ToClient} {
		eventually(t, p, "all passed", func() bool { return p.Counts(d).Passed == 200 })
		if c := p.Counts(d); c.Came != 200 || len(c.Dropped) != 0 || !c.balance() {
			t.Errorf("%v: %v", d, c)
		}
	}
}

// What arrives is what Decide says, datagram by datagram, in each direction and flow.
func TestWhatArrivesIsWhatWasDecided(t *testing.T) {
	const datagrams = 100
	path := Path{Loss: 0.2, Duplication: 0.2, Corruption: 0.2, MaxDatagram: 1000}
	p, first, upstream := newProxy(t, func(c *Config) { c.ToUpstream, c.ToClient = path, path })
	flows := []*end{first, newEnd(t)}
	places := map[int]netip.AddrPort{}
	check := func(d Direction, flow int, from, to *end, at netip.AddrPort) {
		t.Helper()
		var want [][]byte
		for n := range uint32(datagrams) {
			size := 20
			if n%10 == 9 {
				size = 1001
			}
			from.send(at, n, size)
			b := make([]byte, size)
			binary.BigEndian.PutUint32(b, n)
			x := path.Decide(42, d, uint64(flow), uint64(n))
			if x.Lost || size > path.MaxDatagram {
				continue
			}
			x.invert(b)
			want = append(want, b)
			if x.Copied {
				want = append(want, b)
			}
		}
		if len(want) < datagrams/2 {
			t.Fatalf("%d are left: a wrong test", len(want))
		}
		var got [][]byte
		for range want {
			b, from := to.next()
			got = append(got, slices.Clone(b))
			if d == ToUpstream {
				places[flow] = from
			}
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%v, flow %d: got\n%x\nwant\n%x", d, flow, got, want)
		}
	}
	for flow, client := range flows {
		check(ToUpstream, flow, client, upstream, p.Addr())
		check(ToClient, flow, upstream, client, places[flow])
		if places[flow] != p.Places()[client.addr()] {
			t.Errorf("the upstream sees %v, the proxy says %v", places[flow], p.Places())
		}
	}
	if places[0] == places[1] {
		t.Error("two clients are one to the upstream")
	}
	upstream.nothing()
	for _, d := range []Direction{ToUpstream, ToClient} {
		eventually(t, p, "all that came are judged", func() bool { c := p.Counts(d); return c.Came == 2*datagrams && c.Waiting == 0 })
		if c := p.Counts(d); c.Dropped[TooLarge] != 20 || c.Dropped[Lost] == 0 || c.Duplicated == 0 || c.Corrupted == 0 || !c.balance() {
			t.Errorf("%v: %v", d, c)
		}
	}
}

// Datagrams overtake each other where that is asked for, and each arrives once.
func TestReordering(t *testing.T) {
	p, client, upstream := newProxy(t, func(c *Config) {
		c.ToUpstream = Path{Reordering: 0.2, ReorderBy: 50 * time.Millisecond}
	})
	var got []uint32
	for n := range uint32(100) {
		client.send(p.Addr(), n, 4)
	}
	for range 100 {
		n, _ := upstream.number()
		got = append(got, n)
	}
	if slices.IsSorted(got) {
		t.Error("all came in order")
	}
	if slices.Sort(got); len(slices.Compact(got)) != 100 || p.Counts(ToUpstream).Reordered == 0 {
		t.Errorf("%d of 100 came, %v", len(got), p)
	}
}

// A delay is one, of either direction alone.
func TestDelay(t *testing.T) {
	const delay = 100 * time.Millisecond
	p, client, upstream := newProxy(t, func(c *Config) { c.ToClient.Delay = delay })
	client.send(p.Addr(), 1, 4)
	_, from := upstream.number()
	begun := time.Now()
	upstream.send(from, 2, 4)
	client.number()
	if took := time.Since(begun); took < delay {
		t.Errorf("it took %v", took)
	}
}

// Another path is one from the next datagram on; what is none changes nothing.
func TestSet(t *testing.T) {
	p, client, upstream := newProxy(t)
	if err := p.Set(ToUpstream, Path{Loss: 1, MaxDatagram: -1}); err == nil {
		t.Error("a wrong path is taken")
	}
	client.send(p.Addr(), 1, 4)
	upstream.number()
	if err := p.Set(ToUpstream, Path{Loss: 1}); err != nil {
		t.Fatal(err)
	}
	client.send(p.Addr(), 2, 4)
	eventually(t, p, "the loss", func() bool { return p.Counts(ToUpstream).Dropped[Lost] == 1 })
	if err := p.Set(ToUpstream, Path{}); err != nil {
		t.Fatal(err)
	}
	client.send(p.Addr(), 3, 4)
	if n, _ := upstream.number(); n != 3 {
		t.Errorf("number %d came", n)
	}
}

// The upstream sees the client somewhere else when Rebind has returned, nobody is where it
// was before, and the client's own end stays.
func TestRebind(t *testing.T) {
	p, client, upstream := newProxy(t)
	client.send(p.Addr(), 0, 4)
	_, before := upstream.number()
	seen := []netip.AddrPort{before}
	for n, to := range []netip.Addr{{}, netip.MustParseAddr("127.0.0.3"), {}} {
		if err := p.Rebind(to); err != nil {
			t.Fatal(err)
		}
		upstream.send(before, 100, 4)
		eventually(t, p, "it is forgotten", func() bool { return p.Counts(ToClient).Dropped[Forgotten] == uint64(n+1) })
		client.send(p.Addr(), uint32(n), 4)
		got, from := upstream.number()
		if got != uint32(n) || slices.Contains(seen, from) {
			t.Fatalf("%d came from %v, after %v", got, from, seen)
		}
		if want := [3]string{"127.0.0.1", "127.0.0.3", "127.0.0.3"}[n]; from.Addr().String() != want {
			t.Errorf("it came from %v, want %v", from, want)
		}
		upstream.send(from, 7, 4)
		if got, at := client.number(); got != 7 || at != p.Addr() {
			t.Errorf("%d came back from %v", got, at)
		}
		seen, before = append(seen, from), from
	}
	if err := p.Rebind(netip.MustParseAddr("192.0.2.1")); err == nil {
		t.Error("an address that is not here is taken")
	}
	client.send(p.Addr(), 9, 4)
	if _, from := upstream.number(); from != before {
		t.Errorf("a rebinding that failed moved the client to %v", from)
	}
	if p.Close(); p.Rebind(netip.Addr{}) == nil {
		t.Error("a closed proxy rebinds")
	}
}

// Nothing passes while it is dark, also of what came before, and then all does.
func TestBlackout(t *testing.T) {
	p, client, upstream := newProxy(t)
	client.send(p.Addr(), 0, 4)
	_, from := upstream.number()
	if err := p.Set(ToUpstream, Path{Delay: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	client.send(p.Addr(), 1, 4)
	eventually(t, p, "one is under way", func() bool { return p.Counts(ToUpstream).Waiting == 1 })
	p.Blackout(true)
	client.send(p.Addr(), 2, 4)
	upstream.send(from, 3, 4)
	eventually(t, p, "all are lost", func() bool {
		return p.Counts(ToUpstream).Dropped[Blackout] == 2 && p.Counts(ToClient).Dropped[Blackout] == 1
	})
	p.Blackout(false)
	client.send(p.Addr(), 4, 4)
	if n, again := upstream.number(); n != 4 || again != from {
		t.Errorf("%d came from %v", n, again)
	}
	upstream.send(from, 5, 4)
	if n, _ := client.number(); n != 5 {
		t.Errorf("%d came back", n)
	}
}

// What comes while it is dark is lost there and then, however soon the dark ends.
func TestBlackoutLosesWhatComes(t *testing.T) {
	p, client, _ := newProxy(t, func(c *Config) { c.ToUpstream.Delay = maxDelay })
	p.Blackout(true)
	client.send(p.Addr(), 1, 4)
	eventually(t, p, "it came", func() bool { return p.Counts(ToUpstream).Came == 1 })
	if c := p.Counts(ToUpstream); c.Dropped[Blackout] != 1 || c.Waiting != 0 {
		t.Errorf("%v", c)
	}
}

// Only the upstream reaches a client.
func TestStrangersReachNobody(t *testing.T) {
	p, client, upstream := newProxy(t)
	client.send(p.Addr(), 0, 4)
	_, from := upstream.number()
	newEnd(t).send(from, 1, 4)
	eventually(t, p, "the stranger is seen", func() bool { return p.Counts(ToClient).Dropped[Stranger] == 1 })
	upstream.send(from, 2, 4)
	if n, _ := client.number(); n != 2 {
		t.Errorf("%d came", n)
	}
	if c := p.Counts(ToClient); !c.balance() {
		t.Errorf("%v", c)
	}
}

// Clients are bounded: the one that was silent for longest begins anew.
func TestFlowsAreBounded(t *testing.T) {
	p, _, upstream := newProxy(t)
	var clients []*end
	for n := range maxFlows {
		clients = append(clients, newEnd(t))
		clients[n].send(p.Addr(), uint32(n), 4)
		upstream.number()
	}
	clients[0].send(p.Addr(), 0, 4)
	_, kept := upstream.number()
	lost := p.Places()[clients[1].addr()]
	newEnd(t).send(p.Addr(), 0, 4)
	upstream.number()
	places := p.Places()
	if len(places) != maxFlows || places[clients[0].addr()] != kept {
		t.Errorf("%d flows, the first at %v, was at %v", len(places), places[clients[0].addr()], kept)
	}
	if _, ok := places[clients[1].addr()]; ok {
		t.Error("the one that was silent for longest is still there")
	}
	clients[1].send(p.Addr(), 0, 4)
	if _, from := upstream.number(); from == lost {
		t.Error("it has its old place")
	}
}

// A proxy without a socket for a client counts what it cannot carry, and goes on.
func TestNoSocketForAFlow(t *testing.T) {
	opened := 0
	p, client, upstream := newProxy(t, func(c *Config) {
		c.ListenPacket = func(ctx context.Context, network, address string) (net.PacketConn, error) {
			if opened++; opened == 2 {
				return nil, os.ErrPermission
			}
			return new(net.ListenConfig).ListenPacket(ctx, network, address)
		}
	})
	client.send(p.Addr(), 0, 4)
	eventually(t, p, "the first is lost", func() bool { return p.Counts(ToUpstream).Dropped[Unsent] == 1 })
	client.send(p.Addr(), 1, 4)
	if n, _ := upstream.number(); n != 1 {
		t.Errorf("%d came", n)
	}
	if c := p.Counts(ToUpstream); !c.balance() {
		t.Errorf("%v", c)
	}
}

// What is none is refused, and leaves nothing behind.
func TestWrongConfigurations(t *testing.T) {
	upstream := netip.MustParseAddrPort("127.0.0.1:9")
	for _, c := range []Config{
		{}, {Upstream: upstream, ToUpstream: Path{Loss: 2}}, {Upstream: upstream, ToClient: Path{Rate: -1}},
		{Upstream: upstream, Listen: netip.MustParseAddrPort("192.0.2.1:9")},
	} {
		if p, err := New(c); err == nil {
			p.Close()
			t.Errorf("%+v is taken", c)
		}
	}
}

// Close loses what waits, ends every socket, and may come twice.
func TestClose(t *testing.T) {
	p, client, upstream := newProxy(t, func(c *Config) { c.ToUpstream.Delay = maxDelay })
	client.send(p.Addr(), 1, 4)
	eventually(t, p, "it waits", func() bool { return p.Counts(ToUpstream).Waiting == 1 })
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if c := p.Counts(ToUpstream); c.Dropped[Closed] != 1 || c.Waiting != 0 || !c.balance() {
		t.Errorf("%v", c)
	}
	upstream.nothing()
	again, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(p.Addr()))
	if err != nil {
		t.Fatalf("its socket is open: %v", err)
	}
	again.Close()
}

func TestEveryReasonHasAName(t *testing.T) {
	for r := range reasons {
		if r.String() == "" {
			t.Errorf("reason %d has no name", r)
		}
	}
	c := Counts{Came: 3, Passed: 1, Dropped: map[Reason]uint64{Lost: 1, TooLarge: 1}}
	const want = "3 came, 1 passed, 0 wait, 0 duplicated, 0 reordered, 0 corrupted, 1 lost, 1 too-large"
	if c.String() != want {
		t.Errorf("%v", c)
	}
}
