package node_test

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
	"serve.zone/relay/hub/tunnel"
)

// narrowRig is a rig whose QUIC searches for larger packets, on a path that carries UDP
// payloads of so many bytes from node to hub, and from hub to node.
type narrowRig struct {
	*rig
	session *nodetest.Session
	there   atomic.Int64
	back    atomic.Int64
	lost    atomic.Int64 // packets that were too large
}

// searching opens a socket of the system, which the bubble does nothing with but ask.
func searching(t *testing.T) *net.UDPConn {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return socket
}

func newNarrowRig(t *testing.T, socket *net.UDPConn) *narrowRig {
	t.Helper()
	r := &narrowRig{rig: &rig{t: t, net: nodetest.NewNetwork(), device: nodetest.NewDevice(64)}}
	if err := r.net.Searches(socket); err != nil {
		t.Fatal(err)
	}
	r.there.Store(1500)
	r.back.Store(1500)
	r.net.SetFate(func(f nodetest.Flight) []time.Duration {
		limit := r.back.Load()
		if f.To == hubAt {
			limit = r.there.Load()
		}
		if int64(len(f.Bytes)) > limit {
			r.lost.Add(1)
			return nil
		}
		return []time.Duration{nodetest.Latency}
	})
	r.startHub(hubKey)
	t.Cleanup(func() { r.hub.Close() })
	r.run(credential())
	r.session = r.rig.session()
	r.full()
	return r
}

// full waits until QUIC has found that a datagram to the hub holds a packet of the inner
// MTU.
func (r *narrowRig) full() {
	r.t.Helper()
	end := time.Now().Add(time.Minute)
	for s := r.client.Status().Tunnel; s == nil || s.DatagramOut < 1400; s = r.client.Status().Tunnel {
		if time.Now().After(end) {
			r.t.Fatalf("datagrams hold %+v", s)
		}
		r.echo(1400, time.Second)
		time.Sleep(time.Second)
	}
	r.session.Whole()
}

// fullBack has the hub tell the node the largest packet that comes whole from there, and
// returns its size. QUIC's search does not end at one size each time, and now and then, in
// fake time, it does not begin: then the node is let dial again.
func (r *narrowRig) fullBack() int {
	r.t.Helper()
	for range 10 {
		for range 20 {
			for size := 1400; size > 1300; size-- {
				joined := r.client.Status().Traffic.InJoined
				r.echo(size, time.Second)
				if r.client.Status().Traffic.InJoined > joined {
					continue
				}
				if err := r.session.Tell(size); err != nil {
					r.t.Fatal(err)
				}
				return size
			}
			time.Sleep(time.Second)
		}
		r.session.Drop(tunnel.CloseDraining)
		r.session = r.rig.session()
		r.full()
	}
	r.t.Fatal("the hub finds no larger packets")
	return 0
}

// B131: a path that has become narrower, to the hub, from it or both, carries full packets
// again within five seconds, on the same tunnel; and so each time that it does.
func TestB131_ThePathNarrows(t *testing.T) {
	both := func(r *narrowRig, to int64) { r.there.Store(to); r.back.Store(to) }
	for name, test := range map[string]struct {
		narrow func(r *narrowRig, to int64)
		steps  []int64
	}{
		"to the hub":   {func(r *narrowRig, to int64) { r.there.Store(to) }, []int64{1252}},
		"from the hub": {func(r *narrowRig, to int64) { r.back.Store(to) }, []int64{1252}},
		"both ways":    {both, []int64{1252}},
		"to the least": {both, []int64{tunnel.PacketSize}},
		"in steps":     {both, []int64{1425, 1360, 1252}},
	} {
		t.Run(name, func(t *testing.T) {
			socket := searching(t)
			synctest.Test(t, func(t *testing.T) {
				r := newNarrowRig(t, socket)
				back := 1400
				if name == "from the hub" {
					back = r.fullBack()
				}
				tunnels := r.client.Status().Tunnels
				for n, to := range test.steps {
					largest := min(back, r.client.Status().Tunnel.DatagramOut) // that goes whole
					test.narrow(r, to)
					lost := r.lost.Load()
					r.echo(largest, 5*time.Second)
					s := r.client.Status()
					if r.lost.Load() == lost || s.Traffic.Narrowings != uint64(n+1) || s.Tunnels != tunnels || len(r.net.Sockets()) != 3 {
						t.Fatalf("at %d bytes: %+v of %+v, sockets %v, %d packets were too large", to, s.Traffic, s.Tunnel, r.net.Sockets(), r.lost.Load()-lost)
					}
					time.Sleep(20 * time.Second) // longer than moves are apart
				}
			})
		})
	}
}

// An idle tunnel is checked once a minute, and what the checks bring back reaches no device.
func TestChecksReachNoDevice(t *testing.T) {
	socket := searching(t)
	synctest.Test(t, func(t *testing.T) {
		r := newNarrowRig(t, socket)
		time.Sleep(time.Minute)
		before := r.client.Status().Traffic
		time.Sleep(5 * time.Minute)
		after := r.client.Status()
		if after.Traffic.InPackets != before.InPackets || after.Traffic.OutPackets != before.OutPackets || len(r.device.FromNode) != 0 {
			t.Errorf("%+v, before %+v", after.Traffic, before)
		}
		r.there.Store(1252)
		for end := time.Now().Add(70 * time.Second); r.client.Status().Traffic.Narrowings == 0; time.Sleep(time.Second) {
			if time.Now().After(end) {
				t.Fatal("nobody notices that the path of an idle tunnel is narrower")
			}
		}
		if s := r.client.Status(); s.State != node.StateUp || s.Tunnels != 1 {
			t.Errorf("%+v", s)
		}
	})
}
