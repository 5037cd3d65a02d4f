package hub

import (
	"net/netip"
	"sync"
	"time"
)

// deafness loses what a node sends, so that QUIC at the hub is held back.
type deafness struct {
	mu    sync.Mutex
	deaf  bool
	drips bool // four in five of the test's packets are lost instead
	large int  // datagrams from the hub that hold a packet of the test's
	late  int  // of them, those that left when it had applied revision 2
}

// largeDatagram is longer than any datagram of QUIC's own in these tests.
const largeDatagram = 600

// deafen loses what a node sends from now on.
func deafen(r *rig, n *node) *deafness {
	d := &deafness{deaf: true}
	at := n.socket.(*memSocket).at
	r.net.watch(func(from, to netip.AddrPort, b []byte) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if to == at && len(b) > largeDatagram {
			d.large++
			r.Hub.mu.Lock()
			if r.state.applied == 2 {
				d.late++
			}
			r.Hub.mu.Unlock()
		}
		return d.deaf && from == at || d.drips && to == at && len(b) > largeDatagram && d.large%5 != 0
	})
	return d
}

// drip has QUIC send what it holds a few datagrams at a time: most are lost.
func (d *deafness) drip() { d.mu.Lock(); defer d.mu.Unlock(); d.deaf, d.drips = false, true }

func (d *deafness) heal() { d.mu.Lock(); defer d.mu.Unlock(); d.deaf = false }

// lateOnes is how many large datagrams left when revision 2 had been applied.
func (d *deafness) lateOnes() int { d.mu.Lock(); defer d.mu.Unlock(); return d.late }

// all is how many large datagrams left.
func (d *deafness) all() int { d.mu.Lock(); defer d.mu.Unlock(); return d.large }

// filled deafens node 1 and has node 0 send it more than QUIC and the outlet hold.
func filled(r *rig, from, to *node) *deafness {
	d := deafen(r, to)
	for n := range 400 {
		from.send(packetOf(ip(0), ip(1), 1000, n))
		if n%50 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	settle()
	return d
}
