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

func latencies(b *testing.B, address string, flood bool) (sorted []time.Duration, floods int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	small, large := request(500), request(1<<20)
	for i := range flowNodes {
		wg.Go(func() {
			c := dialNode(b, address, fmt.Sprintf("node-%d", i))
			defer c.CloseNow()
			time.Sleep(time.Duration(i) * flowInterval / flowNodes)
			for end := time.Now().Add(flowSpan); time.Now().Before(end); time.Sleep(flowInterval) {
				d := timed(func() { roundTrip(b, c, small) })
				mu.Lock()
				sorted = append(sorted, d)
				mu.Unlock()
			}
		})
	}
	if flood {
		wg.Go(func() {
			c := dialNode(b, address, "flood")
			defer c.CloseNow()
			for end := time.Now().Add(flowSpan); time.Now().Before(end); floods++ {
				roundTrip(b, c, large)
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
