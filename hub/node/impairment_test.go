package node_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
)

// faulted is how many datagrams of each direction are impaired one by one: those of QUIC's
// handshake, of the tunnel's, and the first ones behind.
const faulted = 10

var faults = []struct {
	name   string
	delays []time.Duration
}{
	{"lost", nil},
	{"twice", []time.Duration{nodetest.Latency, nodetest.Latency}},
	{"again-later", []time.Duration{nodetest.Latency, 3 * time.Second}},
	{"overtaken", []time.Duration{4 * nodetest.Latency}},
	{"late", []time.Duration{2 * time.Second}},
}

// R61: no single fault on the way of one datagram, whichever it is, costs the node its
// first attempt.
func TestR61_OneFaultCostsNoAttempt(t *testing.T) {
	for _, toHub := range []bool{true, false} {
		for number := 1; number <= faulted; number++ {
			for _, fault := range faults {
				t.Run(fmt.Sprintf("toHub=%v/%d/%s", toHub, number, fault.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { oneFault(t, toHub, number, fault.delays) })
				})
			}
		}
	}
}

func oneFault(t *testing.T, toHub bool, number int, delays []time.Duration) {
	r := newRig(t)
	var hits atomic.Int64
	r.net.SetFate(func(f nodetest.Flight) []time.Duration {
		if f.Number == number && (f.To == hubAt) == toHub {
			hits.Add(1)
			return delays
		}
		return []time.Duration{nodetest.Latency}
	})
	r.run(credential())
	r.state(node.StateUp, 9*time.Second)
	r.session()
	for hits.Load() == 0 {
		r.echo(1200, 5*time.Second)
	}
	r.echo(1400, 5*time.Second)
	if s := r.client.Status(); s.Attempts != 1 || s.State != node.StateUp {
		t.Errorf("%d attempts, state %s, last %+v", s.Attempts, s.State, s.Last)
	}
}

// R61: a path that loses, repeats and reorders a lot keeps no node out.
func TestR61_BadPathKeepsNobodyOut(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				random := rand.New(rand.NewPCG(seed, 0))
				delay := func() time.Duration { return time.Duration(random.Int64N(int64(200 * time.Millisecond))) }
				r.net.SetFate(func(nodetest.Flight) []time.Duration {
					switch at := random.Float64(); {
					case at < 0.2:
						return nil
					case at < 0.3:
						return []time.Duration{delay(), delay()}
					default:
						return []time.Duration{delay()}
					}
				})
				r.run(credential())
				r.state(node.StateUp, time.Minute)
				r.echo(1100, 20*time.Second)
				r.echo(1400, 30*time.Second)
			})
		})
	}
}
