package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

const (
	flowNodes    = 255
	flowSpan     = 3 * time.Second
	flowInterval = 100 * time.Millisecond // of a node's requests: a tenth of the load the machine takes
)

// BenchmarkFlows has 255 nodes send a request of 500 bytes every 100 ms
// through the carrier over one upstream socket, without and with a 256th that
// floods with 1 MiB. It prints what the flood adds to the others' latency.
func BenchmarkFlows(b *testing.B) {
	p := start(b, "forward", newCloud(b, 500))
	var p50, p99 []float64
	var quiet, flooded []time.Duration
	var floods int
	for b.Loop() {
		for range rounds {
			quiet, _ = latencies(b, p.address, false)
			flooded, floods = latencies(b, p.address, true)
			p50 = append(p50, ms(at(flooded, 50)-at(quiet, 50)))
			p99 = append(p99, ms(at(flooded, 99)-at(quiet, 99)))
		}
	}
	slices.Sort(p50)
	slices.Sort(p99)
	b.ReportMetric(p50[len(p50)/2], "added-p50-ms")
	b.ReportMetric(p99[len(p99)/2], "added-p99-ms")
	b.ReportMetric(ms(at(quiet, 50)), "quiet-p50-ms")
	b.ReportMetric(ms(at(quiet, 99)), "quiet-p99-ms")
	b.ReportMetric(float64(floods)/flowSpan.Seconds(), "flood-MiB/s")
	b.ReportMetric(0, "ns/op")
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// latencies drives the nodes for a while, all connected before any begins.
func latencies(b *testing.B, address string, flood bool) (sorted []time.Duration, floods int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	small, large := request(500), request(1<<20)
	nodes := make([]*websocket.Conn, flowNodes+1)
	for i := range nodes {
		nodes[i] = dialNode(b, address, fmt.Sprintf("node-%d", i))
		defer nodes[i].CloseNow()
	}
	begin := time.Now()
	for i, c := range nodes[:flowNodes] {
		wg.Go(func() {
			next := begin.Add(time.Duration(i) * flowInterval / flowNodes)
			for ; next.Before(begin.Add(flowSpan)); next = next.Add(flowInterval) {
				time.Sleep(time.Until(next))
				roundTrip(b, c, small)
				d := time.Since(next) // from when it was due, so that a late start counts
				mu.Lock()
				sorted = append(sorted, d)
				mu.Unlock()
			}
		})
	}
	if flood {
		wg.Go(func() {
			for ; time.Since(begin) < flowSpan; floods++ {
				roundTrip(b, nodes[flowNodes], large)
			}
		})
	}
	wg.Wait()
	slices.Sort(sorted)
	return sorted, floods
}

func dialNode(b *testing.B, address, node string) *websocket.Conn {
	c, _, err := websocket.Dial(context.Background(), "wss://"+address+"/"+node, &websocket.DialOptions{
		HTTPClient:      &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
		CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		b.Error(err)
		return nil
	}
	c.SetReadLimit(-1)
	return c
}

func roundTrip(b *testing.B, c *websocket.Conn, text []byte) {
	if err := c.Write(context.Background(), websocket.MessageText, text); err != nil {
		b.Error(err)
		return
	}
	if _, _, err := c.Read(context.Background()); err != nil {
		b.Error(err)
	}
}

// BenchmarkIdle is the resident memory of the carrier for an idle node socket
// over TLS, without the fixed cost of the process.
func BenchmarkIdle(b *testing.B) {
	const sockets = 500
	p := start(b, "forward", newCloud(b, 500))
	var each float64
	for b.Loop() {
		roundTrip(b, dialNode(b, p.address, "warm"), request(500))
		before := p.resident(b)
		held := make([]*websocket.Conn, sockets)
		for i := range held {
			held[i] = dialNode(b, p.address, fmt.Sprintf("node-%d", i))
			roundTrip(b, held[i], request(500))
		}
		p.usage(b) // collects garbage first
		each = float64(p.resident(b)-before) / sockets
		for _, c := range held {
			c.CloseNow()
		}
	}
	b.ReportMetric(each/1024, "KiB/socket")
	b.ReportMetric(0, "ns/op")
}
