package hub_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// eavesdropper is on the way between one node and the hub. He passes on every datagram at
// once and in order, and can send whatever he likes to both, from where either expects the
// other and from elsewhere.
type eavesdropper struct {
	near, far *net.UDPConn // towards the node, and the hub
	elsewhere []*net.UDPConn
	hub       *net.UDPAddr
	all       sync.WaitGroup

	meddles atomic.Bool // he does more than listen
	meddled atomic.Uint64

	mu   sync.Mutex
	node *net.UDPAddr
	kept [2][][]byte // what went to the hub, and from it
}

const (
	// keeps is how many datagrams of a direction an eavesdropper keeps.
	keeps = 512
	// craftedAtOnce is how many of his own he sends behind each that he passes on.
	craftedAtOnce = 6
)

func listens(t *testing.T, hub netip.AddrPort) *eavesdropper {
	t.Helper()
	e := &eavesdropper{hub: net.UDPAddrFromAddrPort(hub)}
	open := func(at string) *net.UDPConn {
		socket, err := net.ListenPacket("udp4", at)
		if err != nil {
			t.Fatal(err)
		}
		socket.(*net.UDPConn).SetReadBuffer(4 << 20)
		return socket.(*net.UDPConn)
	}
	e.near, e.far = open("127.0.0.1:0"), open("127.0.0.1:0")
	e.elsewhere = []*net.UDPConn{open("127.0.0.1:0"), open("127.0.0.9:0"), open("127.66.0.1:0")}
	e.all.Go(func() { e.pass(0, e.near, e.far) })
	e.all.Go(func() { e.pass(1, e.far, e.near) })
	t.Cleanup(func() {
		for _, socket := range append(e.elsewhere, e.near, e.far) {
			socket.Close()
		}
		e.all.Wait()
	})
	return e
}

func (e *eavesdropper) at() netip.AddrPort { return e.near.LocalAddr().(*net.UDPAddr).AddrPort() }

// pass passes on one direction.
func (e *eavesdropper) pass(direction int, from, to *net.UDPConn) {
	r := rand.New(rand.NewPCG(uint64(direction), 77))
	b := make([]byte, 1<<16)
	for {
		n, source, err := from.ReadFromUDP(b)
		if err != nil {
			return
		}
		e.mu.Lock()
		if direction == 0 {
			e.node = source
		}
		target := e.hub
		if direction == 1 {
			target = e.node
		}
		if e.kept[direction] = append(e.kept[direction], bytes.Clone(b[:n])); len(e.kept[direction]) > keeps {
			e.kept[direction] = e.kept[direction][1:]
		}
		e.mu.Unlock()
		if target == nil {
			continue
		}
		first := e.meddles.Load() && r.IntN(8) == 0
		if first { // his own copy is there before the one of its sender
			e.elsewhere[r.IntN(len(e.elsewhere))].WriteToUDP(b[:n], target)
		}
		to.WriteToUDP(b[:n], target)
		if e.meddles.Load() {
			e.meddle(r, direction, b[:n], to, target)
		}
	}
}

// meddle sends everything that can be made of a datagram, and of earlier ones.
func (e *eavesdropper) meddle(r *rand.Rand, direction int, d []byte, to *net.UDPConn, target *net.UDPAddr) {
	e.mu.Lock()
	old := e.kept[direction][r.IntN(len(e.kept[direction]))]
	other := e.kept[1-direction]
	if len(other) > 0 {
		other = [][]byte{other[r.IntN(len(other))]}
	}
	e.mu.Unlock()
	flipped := func() []byte {
		b := bytes.Clone(d)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	}
	header := bytes.Clone(d) // of a connection that stands, and nothing else right
	for i := min(9, len(header)); i < len(header); i++ {
		header[i] = byte(r.Uint32())
	}
	crafted := [][]byte{
		d, d, old, flipped(), flipped(), flipped(), d[:r.IntN(len(d))+1], d[:len(d)-1], append(bytes.Clone(d), 0), header,
		append([]byte{0xc0, 0, 0, 0, 0, 8}, header...), // a version negotiation
		append([]byte{0xf0, 0, 0, 0, 1, 8}, header...), // a retry
		{0x40}, {},
	}
	crafted = append(crafted, other...) // what the other one has said
	// Not all of it each time: what is sent at once must find room in the sockets, or those
	// of the two are lost.
	for range craftedAtOnce {
		b := crafted[r.IntN(len(crafted))]
		from := to
		if r.IntN(2) == 0 {
			from = e.elsewhere[r.IntN(len(e.elsewhere))]
		}
		from.WriteToUDP(b, target)
		e.meddled.Add(1)
	}
}

// repeats sends everything once more that was kept, to the hub: a little at once, and
// something else between.
func (e *eavesdropper) repeats(between func()) {
	e.mu.Lock()
	kept := slices.Clone(e.kept[0])
	e.mu.Unlock()
	for some := range slices.Chunk(kept, 16) {
		for _, b := range some {
			e.far.WriteToUDP(b, e.hub)
			e.elsewhere[0].WriteToUDP(b, e.hub)
		}
		between()
	}
}

// once counts packets by number.
type once struct {
	mu    sync.Mutex
	count map[uint32]int
	wrong int
}

func (x *once) got(packet []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count[numberOf(packet)]++; !bytes.Equal(packet, numbered(int(packet[atSource+2]), int(packet[atDestination+2]), numberOf(packet))) {
		x.wrong++
	}
}

// numbered is a packet that says its number all over.
func numbered(from, to int, number uint32) []byte {
	return inner{from: workload(from), to: workload(to), number: number, length: 600, change: []func([]byte){func(p []byte) {
		for i := ipv4Header; i < len(p); i += 4 {
			binary.BigEndian.PutUint32(p[i:], number)
		}
	}}}.bytes()
}

// came reports whether each number up to one has come, once.
func (x *once) came(last uint32) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.count) != int(last) {
		return fmt.Errorf("%d of %d have come", len(x.count), last)
	}
	return nil
}

// Datagrams of a session that stands, repeated, cut, changed, lengthened or sent from
// elsewhere, even before their own sender's, and any other that can be made of them, change
// nothing: every packet passes once as it is, in both directions, over one session.
func TestWhateverIsDoneToDatagramsOnTheWayChangesNothing(t *testing.T) {
	c := start(t)
	c.admit()
	c.admit()
	c.grant([2]int{0, 1}, [2]int{1, 0})
	c.push()
	way := listens(t, c.hubAddress())
	var came [2]*once
	var peers [2]*peer
	for n := range peers {
		came[n] = &once{count: map[uint32]int{}}
		peers[n] = c.dial(n, func(d *dialling) {
			if d.got = came[n].got; n == 0 {
				d.to = way.at()
			}
		})
	}
	const round, roundsOf = 4, 150
	pass := func(rounds int, last *uint32) {
		t.Helper()
		for range rounds {
			for range round {
				*last++
				for n, p := range peers {
					if err := p.send(numbered(n, 1-n, *last)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for n := range peers {
				c.Eventually("packets to "+name(n), func() error { return came[n].came(*last) })
			}
		}
	}
	var last uint32
	pass(10, &last)
	address := c.shownOf(0).Session.Address
	way.meddles.Store(true)
	pass(roundsOf, &last)
	way.meddles.Store(false)
	way.repeats(func() { pass(1, &last) })

	for n, x := range came {
		x.mu.Lock()
		for number, count := range x.count {
			if count != 1 {
				t.Errorf("packet %d came to %s %d times", number, name(n), count)
			}
		}
		if x.wrong != 0 {
			t.Errorf("%d packets came to %s changed", x.wrong, name(n))
		}
		x.count = map[uint32]int{}
		x.mu.Unlock()
		m := c.shownOf(n)
		if m.Sessions != 1 || m.FromPackets != uint64(last) || m.ToPackets != uint64(last) || len(m.Dropped) != 0 || !peers[n].open() {
			t.Errorf("shown %+v, of %d packets", m, last)
		}
	}
	if now := c.shownOf(0).Session.Address; now != address {
		t.Errorf("the hub follows the node to %s, it is at %s", now, address)
	}
	if n := way.meddled.Load(); n < craftedAtOnce*roundsOf*round {
		t.Errorf("only %d datagrams were made", n)
	}

	// Those of a session that is over open nothing.
	peers[0].close()
	c.Eventually("the session to end", func() error {
		if s := c.shownOf(0).Session; s != nil {
			return fmt.Errorf("shown %+v", s)
		}
		return nil
	})
	way.repeats(func() { c.shown() })
	came[0] = &once{count: map[uint32]int{}}
	peers[0] = c.dial(0, func(d *dialling) { d.to, d.got = way.at(), came[0].got })
	var again uint32
	way.repeats(func() { pass(1, &again) })
	if m := c.shownOf(0); m.Sessions != 2 || m.FromPackets != uint64(last+again) {
		t.Errorf("shown %+v", m)
	}
	if n := c.handshakes("confirmed"); n != 3 {
		t.Errorf("%v handshakes were confirmed", n)
	}
}
