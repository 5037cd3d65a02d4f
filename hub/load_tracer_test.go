package hub

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"serve.zone/relay/hub/policy"
)

// quicDrops counts what QUIC drops of what it has received, and tells nobody else: a
// datagram when 128 wait to be read, and a packet when 256 wait to be opened.
type quicDrops struct {
	mu        sync.Mutex
	datagrams int
	packets   int
}

// trace returns QUIC's tracer of a connection.
func (d *quicDrops) trace(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return d }

func (d *quicDrops) AddProducer() qlogwriter.Recorder { return d }
func (d *quicDrops) Close() error                     { return nil }

// RecordEvent is told of everything that a connection does.
func (d *quicDrops) RecordEvent(e qlogwriter.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e := e.(type) {
	case qlog.DatagramDropped:
		if e.Direction == qlog.DirectionReceiving {
			d.datagrams++
		}
	case qlog.PacketDropped:
		if e.Trigger == qlog.PacketDropDOSPrevention {
			d.packets++
		}
	}
}

func (d *quicDrops) count() (datagrams, packets int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.datagrams, d.packets
}

// newTracedRig makes a hub on a network of its own, of which all connections are traced.
func newTracedRig(t testing.TB, d *quicDrops) *rig {
	r := &rig{net: newPacketNet()}
	r.build(t, []func(*Config){func(c *Config) {
		c.Address = netip.MustParseAddrPort(hubAddress)
		c.ListenPacket = func(ctx context.Context, network, address string) (net.PacketConn, error) {
			r.Hub.quic.Tracer = d.trace // before QUIC is given its configuration
			return r.net.ListenPacket(ctx, network, address)
		}
	}})
	return r
}

// quicQueue is how many received datagrams QUIC queues until it drops.
const quicQueue = 128

// QUIC drops what nobody reads, and the tracer is told: it is what the test below
// relies on.
func TestTheTracerSeesWhatQUICDrops(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var drops quicDrops
		r := newRig(t)
		r.cloudly().must(netOf(1, 1))
		// A node that goes no further than QUIC, and reads nothing.
		if _, err := r.dialIt(0, func(d *dialling) {
			d.config.Tracer, d.stop = drops.trace, func(*node) bool { return false }
		}); err != nil {
			t.Fatal(err)
		}
		settle()
		r.Hub.mu.Lock()
		conns := r.others(nil)
		r.Hub.mu.Unlock()
		const sent = 200
		for n := range sent {
			if err := conns[0].SendDatagram(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if n%20 == 0 {
				settle()
			}
		}
		settle()
		if datagrams, packets := drops.count(); datagrams != sent-quicQueue || packets != 0 {
			t.Errorf("%d datagrams and %d packets were dropped", datagrams, packets)
		}
	})
}

// The reader of a member never waits for another: while one that it sends to takes
// nothing, QUIC drops nothing of what the member sends, and all that it sends to others
// arrives.
func TestQUICDropsNothingWhileADestinationTakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var drops quicDrops
		r := newTracedRig(t, &drops)
		r.cloudly().must(netOf(1, 4, 0, 1, 0, 2, 3, 1))
		a, b, c, other := r.dial(0), r.dial(1), r.dial(2), r.dial(3)
		deafen(r, b)
		const rounds, each = 60, 20
		number := 0
		for range rounds {
			for range each {
				a.send(packetOf(ip(0), ip(1), 1000, number))
				a.send(packetOf(ip(0), ip(2), 1000, number))
				other.send(packetOf(ip(3), ip(1), 1000, number))
				number++
			}
			settle()
		}
		if r.drops(policy.QueueFull) < 2*quicQueue {
			t.Fatalf("%d packets were dropped since a queue was full: b takes them", r.drops(policy.QueueFull))
		}
		if datagrams, packets := drops.count(); datagrams != 0 || packets != 0 {
			t.Errorf("QUIC dropped %d datagrams and %d packets", datagrams, packets)
		}
		if got := numbers(c.take()); len(got) != rounds*each {
			t.Errorf("%d of %d packets arrived at c", len(got), rounds*each)
		}
		if m, o := r.member(0), r.member(3); m.FromPackets != 2*rounds*each || o.FromPackets != rounds*each {
			t.Errorf("%d and %d packets came out of the tunnels", m.FromPackets, o.FromPackets)
		}
	})
}
