package hub_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"serve.zone/relay/integration/rig"
)

const (
	// volumeVariable names how many mebibytes of packets cross the hub in R67's test. The
	// row says 1024; what is passed without it fits a run of all tests.
	volumeVariable = "RELAY_HUB_MEBIBYTES"
	usualVolume    = 48

	// loadMembers is how many nodes the row names.
	loadMembers = 10
	// warmSamples is how often the memory is looked at before it counts as warm, when half
	// as much has crossed as is to cross then.
	warmSamples = 10
	// loadGrowth bounds how much more memory the relay takes at most while the packets
	// cross than before: much less than crosses. Its own queues hold 2.5 MiB at most,
	// QUIC's little more, and the collector lets garbage become as much as what lives.
	loadGrowth = 20 << 20
	// loadCalls is how many calls of a node and of Cloudly are answered meanwhile, and
	// loadPushes how many networks take effect.
	loadCalls  = 60
	loadPushes = 6
)

func volume(t *testing.T) float64 {
	t.Helper()
	text := os.Getenv(volumeVariable)
	if text == "" {
		return usualVolume << 20
	}
	n, err := strconv.ParseUint(text, 10, 20)
	if err != nil {
		t.Fatalf("%s: %v", volumeVariable, err)
	}
	return float64(n << 20)
}

// R67: ten nodes send packets through the hub as fast as it takes them. Its memory does not
// grow with what crosses, every packet that it took is counted as carried or as dropped,
// and what nodes and Cloudly say to each other meanwhile, and new networks, are served
// while the load goes on.
func TestR67_ThroughputAndBoundedMemory(t *testing.T) {
	c := start(t)
	for range loadMembers {
		c.admit()
	}
	ring := func(n int) [2]int { return [2]int{n, (n + 1) % loadMembers} }
	var grants [][2]int
	for n := range loadMembers - 1 {
		grants = append(grants, ring(n))
	}
	c.grant(append(grants, ring(loadMembers-1))...)
	c.push()
	node := c.Node(name(0))
	var came atomic.Uint64
	var peers []*peer
	for n := range loadMembers {
		peers = append(peers, c.dial(n, func(d *dialling) { d.got = func([]byte) { came.Add(1) } }))
	}
	var flows []*flow
	for n, p := range peers {
		flows = append(flows, c.sends(p, 0, func(number uint32) []byte {
			to := ring(n)[1]
			if number%32 == 0 {
				to = (n + 5) % loadMembers // without a grant
			}
			return inner{from: workload(n), to: workload(to), number: number, length: 1150}.bytes()
		}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var calls, pushes atomic.Int64
	var control sync.WaitGroup
	control.Go(func() {
		for i := 0; calls.Load() < loadCalls && ctx.Err() == nil; i++ {
			_, err := node.Send(ctx, protection, []byte(`{"x":1}`))
			if err == nil {
				_, err = c.Cloudly.CallNode(ctx, name(0), assignment, []byte(`{"x":1}`))
			}
			if err != nil {
				t.Errorf("call %d: %v", i, err)
				return
			}
			calls.Add(1)
		}
	})
	control.Go(func() {
		for x := c.network; pushes.Load() < loadPushes && ctx.Err() == nil; {
			x.Revision++
			if _, err := c.Cloudly.ApplyNetwork(ctx, x); err != nil {
				t.Errorf("revision %d: %v", x.Revision, err)
				return
			}
			pushes.Add(1)
		}
	})

	goal := volume(t)
	var m rig.Metrics
	measures := [...]string{"go_memstats_heap_inuse_bytes", "go_memstats_sys_bytes"}
	var warm, most [len(measures)]float64
	begun := 0.0 // what had crossed when the relay was warm
	for samples := 1; ; samples++ {
		m = c.Metrics()
		crossed := m["relay_hub_relayed_bytes_total"]
		for i, measure := range measures {
			most[i] = max(most[i], m[measure])
		}
		if begun == 0 && samples > warmSamples && crossed > goal/2 {
			begun, warm = crossed, most
		}
		if begun > 0 && crossed >= begun+goal && calls.Load() >= loadCalls && pushes.Load() >= loadPushes {
			break
		}
		if ctx.Err() != nil || t.Failed() {
			t.Fatalf("%v bytes have crossed, %d calls and %d networks were served", crossed, calls.Load(), pushes.Load())
		}
		time.Sleep(50 * time.Millisecond) // as often as it is looked
	}
	control.Wait()
	for _, f := range flows {
		f.stop()
	}
	for i, measure := range measures {
		if most[i] > warm[i]+loadGrowth {
			t.Errorf("%s was %v at first, and %v while %v bytes crossed", measure, warm[i], most[i], goal)
		}
	}
	c.Eventually("every packet to be accounted for", func() error {
		m = c.Metrics()
		_, dropped := drops(m)
		var taken uint64
		for _, x := range c.shown().Members {
			taken += x.FromPackets
		}
		if relayed := m["relay_hub_relayed_packets_total"]; float64(taken) != relayed+dropped || m["relay_hub_queued_bytes"] != 0 {
			return fmt.Errorf("%d were taken, %v carried and %v dropped", taken, relayed, dropped)
		}
		return nil
	})
	_, dropped := drops(m)
	if none, _ := c.dropped("no-grant"); none == 0 || came.Load() == 0 {
		t.Errorf("%v packets without a grant were dropped, %d came", none, came.Load())
	}
	for _, x := range c.shown().Members {
		if x.Sessions != 1 || x.Session == nil {
			t.Errorf("shown %+v", x)
		}
	}
	t.Logf("%.0f MiB, %d packets came, heap and program had %.0f bytes at most, %.0f at first, %v were dropped", goal/(1<<20), came.Load(), most, warm, dropped)
}
