package hub_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/tunnel"
	"serve.zone/relay/integration/rig"
)

const (
	// floodSources is how many addresses, of a neighbourhood each, a flood comes from:
	// more than there are places for connections that are half open.
	floodSources = 320
	// floodPause is how long one of them pauses that was refused or had to go. Without it
	// they would keep this machine busy with themselves.
	floodPause = 500 * time.Millisecond
	// halfOpen is how many places there are (design §5.1).
	halfOpen = 256
	// floodMemory is what a flood may cost of the heap: 256 connections at less than
	// 128 KiB (design §5.5), and as much again that was not collected yet.
	floodMemory = 64 << 20
)

// flood is whoever keeps a hub busy from everywhere.
type flood struct {
	all  sync.WaitGroup
	stop context.CancelFunc
}

// floods begins a flood on the hub, by somebody who has the credential of node n: half a
// ClientHello, QUIC without a stream, a stream without a message, a first message that is
// never followed up, one of a stranger, and datagrams that are nothing. Whoever is refused
// or closed comes again.
func (c *cluster) floods(n int) *flood {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	f := &flood{stop: stop}
	stranger, err := node.GeneratePrivateKey(rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	hubKey, err := node.ParsePublicKey(c.facts().PublicKey)
	if err != nil {
		c.t.Fatal(err)
	}
	to, insider := c.hubAddress(), c.keys[name(n)]
	for i := range floodSources {
		d := dialling{
			hub: hubKey, authority: authority, from: fmt.Sprintf("127.%d.%d.1:0", 20+i/200, i%200), to: to,
			offer: tunnel.Offer{Versions: []uint8{tunnel.Version}, InnerMTU: tunnel.MaxInnerMTU, Lanes: []tunnel.Lane{tunnel.LaneDatagram}},
		}
		f.all.Go(func() {
			for round := i; ctx.Err() == nil; round++ {
				d.upTo, d.key, d.config = []stage{connected, opened, initiated, answered}[round%4], insider, tunnel.NodeQUIC()
				if round%16 == 2 {
					d.key = stranger
				}
				d.half = i%5 == 0
				p, err := dialPeer(ctx, d)
				if errors.Is(err, errHalted) {
					select {
					case <-p.conn.Context().Done():
					case <-ctx.Done():
					}
				}
				var end error
				if p != nil {
					if end = err; p.conn != nil {
						end = context.Cause(p.conn.Context())
					}
					p.close()
				}
				if code, ok := tunnel.PeerClose(end); ok && code == tunnel.CloseTimeout || tunnel.CloseCodeFor(end) == tunnel.CloseTimeout {
					continue // his place is free, and he wants it again
				}
				select {
				case <-time.After(floodPause):
				case <-ctx.Done():
				}
			}
		})
	}
	f.all.Go(func() { junk(ctx, to) })
	c.t.Cleanup(f.end)
	return f
}

func (f *flood) end() { f.stop(); f.all.Wait() }

// junk sends datagrams that are no packet of QUIC, or of none that stands, from many
// sources.
func junk(ctx context.Context, to netip.AddrPort) {
	var sockets []net.PacketConn
	defer func() {
		for _, s := range sockets {
			s.Close()
		}
	}()
	for i := range 16 {
		socket, err := net.ListenPacket("udp4", fmt.Sprintf("127.9.%d.1:0", i))
		if err != nil {
			return
		}
		sockets = append(sockets, socket)
	}
	target := net.UDPAddrFromAddrPort(to)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for kind := range 6 {
			b := make([]byte, 1+mathrand.IntN(1400))
			rand.Read(b)
			switch kind {
			case 0: // a packet of a connection
				b[0] = 0x40 | b[0]&0x3f
			case 1: // of the direct lane
				b[0] &= 0x3f
			case 2: // a first packet of a version that nobody has
				b = append(b, make([]byte, 1200)...)
				copy(b, []byte{0xc0, 0x0a, 0x0a, 0x0a, 0x0a, 8})
			case 3: // a first packet in which nothing is right
				b = append(b, make([]byte, 1200)...)
				copy(b, []byte{0xc3, 0, 0, 0, 1, 8})
				copy(b[14:], []byte{0, 0, 0x44, 0x80})
			case 4: // a retry
				b[0] = 0xf0 | b[0]&0x0f
			}
			sockets[mathrand.IntN(len(sockets))].WriteTo(b, target)
		}
	}
}

// A flood of half handshakes from more neighbourhoods than there are places does not keep
// members from connecting, nor packets from passing, and costs no more memory than it may.
func TestAFloodOfHalfHandshakesKeepsNobodyOut(t *testing.T) {
	c := start(t)
	for range 3 {
		c.admit()
	}
	c.grant([2]int{0, 1})
	c.push()
	before := c.Metrics()
	f := c.floods(2)
	// How soon depends on how many handshakes a second the machine makes, of which each
	// holds its place for ten.
	c.Within(2*time.Minute, "every place to be taken", func() error {
		if n := c.shown().HalfOpen; n < halfOpen {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	c.path = clean
	a, b := c.joined(0), c.joined(1)
	socket, err := b.ListenPacket("udp", netip.AddrPortFrom(workload(1), 7000).String())
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	c.datagrams(a, 1, "packets to pass in a flood", arrived(socket))
	var most, heap float64
	goesOn := c.ends("displaced", 100)
	c.Eventually("the flood to go on", func() error {
		now := c.Metrics()
		most = max(most, now["relay_hub_half_open_connections"])
		heap = max(heap, now["go_memstats_heap_inuse_bytes"]-before["go_memstats_heap_inuse_bytes"])
		return goesOn(now)
	})
	if most > halfOpen || heap > floodMemory {
		t.Errorf("%v connections were half open, and cost %v bytes", most, heap)
	}
	// A node may have lost its place, which it learns behind its own confirmation: it dials
	// again. Whom the hub has taken it keeps.
	for n, m := range []*member{a, b} {
		if s := c.shownOf(n); m.is(node.StateUp) != nil || s.Session == nil || s.Sessions != 1 {
			t.Errorf("the client is %+v, shown %+v", m.client.Status(), s)
		}
	}
	f.end()
	c.Eventually("the places to come back", func() error {
		if n := c.shown().HalfOpen; n != 0 {
			return fmt.Errorf("%d are taken", n)
		}
		return nil
	})
	for _, outcome := range []string{"displaced", "key-unknown"} {
		if c.handshakes(outcome) == 0 {
			t.Errorf("no handshake is counted as %s", outcome)
		}
	}
}

// ends reports whether so many more handshakes have ended in a way.
func (c *cluster) ends(outcome string, count float64) func(rig.Metrics) error {
	before := c.handshakes(outcome)
	return func(m rig.Metrics) error {
		if now, _ := m.Value("relay_hub_ended_handshakes_total", "outcome", outcome); now < before+count {
			return fmt.Errorf("%v have ended as %s, %v had before", now, outcome, before)
		}
		return nil
	}
}

// halved is a socket that sends the first half of a ClientHello, which takes two packets,
// again where it must prove that it is there, and nothing else.
type halved struct {
	packets
	may atomic.Bool
}

// packets hides of a socket everything by which QUIC would read and write past us.
type packets struct{ net.PacketConn }

// SetReadBuffer is QUIC's, which complains without it.
func (packets) SetReadBuffer(int) error { return nil }

// SetWriteBuffer is QUIC's.
func (packets) SetWriteBuffer(int) error { return nil }

// WriteTo is QUIC's.
func (h *halved) WriteTo(b []byte, to net.Addr) (int, error) {
	if h.may.CompareAndSwap(true, false) {
		return h.packets.WriteTo(b, to)
	}
	return len(b), nil
}

// ReadFrom is QUIC's.
func (h *halved) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := h.packets.ReadFrom(b)
	if n > 0 && b[0]&0xf0 == 0xf0 { // a Retry (RFC 9000 §17.2.5)
		h.may.Store(true)
	}
	return n, from, err
}
