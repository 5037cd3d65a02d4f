package demo

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/userspace"
)

// BenchmarkDownload downloads the demonstration's file, 64 MiB, in turn over three ways:
// through the hub as the demonstration does, between two such network stacks without a
// tunnel, and over the kernel's loopback. Of each it prints the medians of rate and CPU
// time over the rounds, and what they are of the first one for one of the others'. All ends
// are in this one process, whose CPU time is counted.
func BenchmarkDownload(b *testing.B) {
	const rounds = 5
	c := joinedCluster(b)
	path := filepath.Join(c.cfg.Dir, dataFile)
	ways := []way{
		{name: "hub", dial: c.nodes[nodeA].stack.DialContext, url: c.site.url(filePage)},
		wayBetweenStacks(b, path),
		wayOverLoopback(b, path),
	}
	for b.Loop() {
		for range rounds {
			for i := range ways {
				before := processTime()
				d, err := fetch(b.Context(), ways[i].dial, ways[i].url)
				if err != nil || d.digest != c.site.digest {
					b.Fatalf("%s: %d bytes, %v", ways[i].name, d.bytes, err)
				}
				ways[i].rate = append(ways[i].rate, d.megabytes())
				ways[i].cost = append(ways[i].cost, (processTime()-before).Seconds()*1000/float64(d.bytes>>20))
			}
		}
	}
	median := func(figures []float64) float64 {
		slices.Sort(figures)
		return figures[len(figures)/2]
	}
	for i, w := range ways {
		b.ReportMetric(median(w.rate), "MB/s-"+w.name)
		b.ReportMetric(median(w.cost), "cpu-ms/MiB-"+w.name)
		if i > 0 {
			b.ReportMetric(median(ways[0].rate)/median(w.rate), "rate-hub/"+w.name)
			b.ReportMetric(median(ways[0].cost)/median(w.cost), "cpu-hub/"+w.name)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// way is one of the three.
type way struct {
	name string
	dial dialFunc
	url  string
	rate []float64 // of each download, in 10^6 bytes a second
	cost []float64 // and its CPU time, in milliseconds for a MiB
}

// joinedCluster is a cluster whose tunnels are up, and which serves the file.
func joinedCluster(b *testing.B) *cluster {
	b.Helper()
	cfg := configured(b, &kept{})
	cfg.Size = DefaultSize
	c, err := newCluster(cfg)
	b.Cleanup(c.close)
	if err != nil {
		b.Fatal(err)
	}
	var e evidence
	for _, run := range []func(context.Context, *evidence) error{c.start, c.register, c.join, c.download} {
		if err := run(b.Context(), &e); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// serveFile serves a file on a listener until the benchmark ends.
func serveFile(b *testing.B, l net.Listener, path string) {
	b.Helper()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) })}
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(l) })
	b.Cleanup(func() { s.Close(); serving.Wait() })
}

func wayOverLoopback(b *testing.B, path string) way {
	b.Helper()
	l, err := listen()
	if err != nil {
		b.Fatal(err)
	}
	serveFile(b, l, path)
	return way{name: "loopback", dial: new(net.Dialer).DialContext, url: "http://" + l.Addr().String() + "/"}
}

// wayBetweenStacks joins two network stacks like those of nodes, packet for packet.
func wayBetweenStacks(b *testing.B, path string) way {
	b.Helper()
	var stacks []*userspace.Stack
	for i := range 2 {
		s, err := userspace.New(workload(100 + i))
		if err != nil {
			b.Fatal(err)
		}
		stacks = append(stacks, s)
	}
	l, err := stacks[1].Listen("tcp", workload(101).String()+":80")
	if err != nil {
		b.Fatal(err)
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { pump(stacks[0], stacks[1]) })
	pumps.Go(func() { pump(stacks[1], stacks[0]) })
	b.Cleanup(func() {
		for _, s := range stacks {
			s.Close()
		}
		pumps.Wait()
	})
	serveFile(b, l, path)
	return way{name: "stacks", dial: stacks[0].DialContext, url: "http://" + workload(101).String() + "/"}
}

// pump moves packets from one device to another until the first ends.
func pump(from, to node.Device) {
	const room = 64 << 10 // for any packet
	bufs, sizes := make([][]byte, from.BatchSize()), make([]int, from.BatchSize())
	for i := range bufs {
		bufs[i] = make([]byte, node.Headroom+room)
	}
	out := make([][]byte, 0, len(bufs))
	for {
		n, err := from.Read(bufs, sizes, node.Headroom)
		if err != nil {
			return
		}
		out = out[:0]
		for i := range n {
			out = append(out, bufs[i][:node.Headroom+sizes[i]])
		}
		if _, err := to.Write(out, node.Headroom); err != nil {
			return
		}
	}
}
