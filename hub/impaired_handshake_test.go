package hub

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	realnode "serve.zone/relay/hub/node"
	"serve.zone/relay/hub/tunnel"
)

// messages is how many datagrams of each direction are impaired one by one: those of QUIC's
// handshake and of the tunnel's, and the first ones behind.
const messages = 10

const (
	atOnce = time.Millisecond
	// behind is later than whatever follows in the handshake.
	behind = 30 * time.Millisecond
)

// faults are what befalls one datagram: when it arrives.
var faults = []struct {
	name   string
	delays []time.Duration
}{
	{"lost", nil},
	{"twice", []time.Duration{atOnce, atOnce}},
	{"again-later", []time.Duration{atOnce, 3 * time.Second}},
	{"overtaken", []time.Duration{behind}},
	{"late", []time.Duration{2 * time.Second}},
}

// R61: whatever befalls one datagram on the way of one member, whether it goes to the hub
// or from it, the member has one session, the node one tunnel after one attempt, the hub
// counts one handshake of each, and packets pass both ways, whole and in two parts.
func TestR61_OneFaultCostsNoSession(t *testing.T) {
	for _, toHub := range []bool{true, false} {
		for _, size := range []int{100, 1400} {
			for number := 1; number <= messages; number++ {
				for _, fault := range faults {
					t.Run(fmt.Sprintf("toHub=%v/%d-bytes/datagram-%d/%s", toHub, size, number, fault.name), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { oneFault(t, toHub, number, fault.delays, size) })
					})
				}
			}
		}
	}
}

func oneFault(t *testing.T, toHub bool, number int, delays []time.Duration, size int) {
	r := newRig(t)
	r.cloudly().must(netOf(1, 2, 0, 1, 1, 0))
	var hits atomic.Int64
	r.net.decide(func(f flight) []time.Duration {
		peer := f.to
		if toHub {
			peer = f.from
		}
		if peer.Addr() == r.machine(0) && f.number == number {
			hits.Add(1)
			return delays
		}
		return []time.Duration{atOnce}
	})
	a, b := r.runs(0), r.runs(1)
	a.comesUp(9 * time.Second)
	b.comesUp(time.Second)
	for again := true; again; again = hits.Load() == 0 {
		a.reaches(b, size, 5*time.Second)
		b.reaches(a, size, 5*time.Second)
	}
	// Whatever is late has come, and whatever was to end with the handshake has ended.
	time.Sleep(tunnel.HandshakeLimit + time.Second)
	a.reaches(b, size, time.Second)
	b.reaches(a, size, time.Second)
	r.oneSessionEach(a, b)
}

// oneSessionEach fails unless each node got its tunnel at the first attempt, and the hub
// has counted that and nothing else.
func (r *rig) oneSessionEach(all ...*dialler) {
	r.t.Helper()
	for _, d := range all {
		if s := d.client.Status(); s.Attempts != 1 || s.Tunnels != 1 || s.State != realnode.StateUp {
			r.t.Errorf("node %d: %d attempts, %d tunnels, it is %s, last %+v", d.i, s.Attempts, s.Tunnels, s.State, s.Last)
		}
		if m := r.member(d.i); m.Sessions != 1 || m.Session == nil {
			r.t.Errorf("the hub shows of node %d: %+v", d.i, m)
		}
	}
	for how := range handshakeEnds {
		want := uint64(0)
		if how == endConfirmed {
			want = uint64(len(all))
		}
		if got := r.handshakes(how); got != want {
			r.t.Errorf("%d handshakes ended as %v, want %d", got, how, want)
		}
	}
	if n := r.connected(); n != len(all) {
		r.t.Errorf("%d sessions", n)
	}
	if n := r.status().HalfOpen; n != 0 {
		r.t.Errorf("%d connections are half open", n)
	}
}
