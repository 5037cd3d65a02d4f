package bench

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

const (
	// dialWindow is the time over which the peak rate of dials is counted.
	dialWindow = 100 * time.Millisecond
	// reconnectWait is far more than the relay and the nodes need together: a
	// second until it dials, two until it closes the first socket, ten until the
	// last, and a node's waits.
	reconnectWait = 60 * time.Second
)

// BenchmarkLoadReconnect cuts the relay's socket to a Cloudly that is back at
// once, with 256 nodes bound. The nodes wait before they dial again as the real
// ones do. It measures how many dial in the worst 100 ms, and when all have
// registered again.
func BenchmarkLoadReconnect(b *testing.B) {
	for b.Loop() {
		r := newRig(b)
		s := newSink(b, r)
		r.Start()
		r.WaitReady()
		var dials dialTimes
		nodes := startPallets(b, r, &dials)
		before, first := waitAll(b, nodes, make([]int, len(nodes)))

		s.forgetRegistrations()
		cut := time.Now()
		s.cut()
		after, _ := waitAll(b, nodes, before)
		all := time.Since(cut)
		again := dials.since(cut)
		if len(again) < len(nodes) {
			b.Fatalf("%d dials of %d nodes though all have a new socket", len(again), len(nodes))
		}
		extra := 0
		for i := range after {
			extra += after[i] - before[i] - 1
		}
		peak := mostWithin(again, dialWindow)
		back := s.waitRegistered(b).Sub(cut)
		b.ReportMetric(float64(peak), "peak-dials/100ms")
		b.ReportMetric(float64(extra), "failed-dials")
		b.ReportMetric(back.Seconds(), "relay-back-s")
		b.ReportMetric(all.Seconds(), "all-registered-s")
		b.ReportMetric(0, "ns/op")
		b.Logf("%d nodes after an upstream cut: the relay registered again after %.2f s, the first node dialled after %.2f s, at most %d dialled within %s, "+
			"all had registered after %.2f s, with %d dials in vain; the first time, all at once, took %.2f s",
			len(nodes), back.Seconds(), again[0].Sub(cut).Seconds(), peak, dialWindow, all.Seconds(), extra, first.Seconds())
	}
}

// dialTimes notes when nodes reached the listener.
type dialTimes struct {
	mu sync.Mutex
	at []time.Time
}

func (d *dialTimes) note() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = append(d.at, time.Now())
}

// since returns those behind a time, in order.
func (d *dialTimes) since(t time.Time) []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	later := slices.DeleteFunc(slices.Clone(d.at), func(at time.Time) bool { return at.Before(t) })
	slices.SortFunc(later, time.Time.Compare)
	return later
}

// mostWithin returns how many of the times lie within the fullest window.
func mostWithin(sorted []time.Time, window time.Duration) (most int) {
	first := 0
	for i, at := range sorted {
		for at.Sub(sorted[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// startPallets starts all nodes at once.
func startPallets(b *testing.B, r *rig.Rig, dials *dialTimes) []*simulate.Pallet {
	b.Helper()
	nodes := make([]*simulate.Pallet, loadNodes)
	for i := range nodes {
		var err error
		nodes[i], err = simulate.NewPallet(simulate.PalletConfig{
			URL: r.NodeURL(), TLS: r.ClientTLS(), Wall: time.Now, RecordLimit: -1,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp4", r.ListenAddress())
				dials.note()
				return conn, err
			},
			NodeID: fmt.Sprintf("node-%d", i), Credential: simulate.NodeCredential{Generation: 1, Token: "load"},
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(nodes[i].Close)
	}
	for _, n := range nodes {
		if err := n.Start(); err != nil {
			b.Fatal(err)
		}
	}
	return nodes
}

// waitAll waits until every node has a session on a newer socket than the given
// one, and returns the sockets and how long it took.
func waitAll(b *testing.B, nodes []*simulate.Pallet, newerThan []int) ([]int, time.Duration) {
	b.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), reconnectWait)
	defer cancel()
	sockets := make([]int, len(nodes))
	for i, n := range nodes {
		var err error
		if sockets[i], err = n.WaitRegistered(ctx, newerThan[i]); err != nil {
			b.Fatalf("node-%d: %v", i, err)
		}
	}
	return sockets, time.Since(begin)
}
