package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// rounds is how often the two processes are measured in turn; the median of
// the ratios counts.
const rounds = 5

// BenchmarkForward compares the carrier's forwarding of a request and its
// answer, TLS on both sides, with two messages through the library's echo:
// the same number of reads and writes, without any envelope work.
func BenchmarkForward(b *testing.B) {
	for _, c := range []struct {
		name         string
		size, answer int
		window       int
		peer         string
	}{
		{"500B-vs-two-echoes", 500, 500, 64, "echo"},
		{"100KiB-vs-reader-to-writer", 100 << 10, 500, 8, "stream-echo"},
		{"1MiB-vs-reader-to-writer", 1 << 20, 500, 4, "stream-echo"},
	} {
		b.Run(c.name, func(b *testing.B) {
			cloud := newCloud(b, c.answer)
			ours, theirs := start(b, "forward", cloud), start(b, c.peer, "")
			pace := calibrate(b, ours, c.size, c.window)
			var cpu, allocs []float64
			var last [2]usage
			for b.Loop() {
				for range rounds {
					mine := measure(b, ours, request(c.size), c.window, pace)
					// The peer's messages: the request once, and the answer once.
					other := measure(b, theirs, request(c.size), c.window, pace)
					if c.peer == "echo" {
						other = plus(other, measure(b, theirs, request(c.answer), c.window, pace))
					}
					cpu = append(cpu, float64(mine.cpu)/float64(other.cpu))
					allocs = append(allocs, float64(mine.allocated)/float64(pace))
					last = [2]usage{mine, other}
				}
			}
			slices.Sort(cpu)
			slices.Sort(allocs)
			b.ReportMetric(cpu[len(cpu)/2], "cpu-ratio")
			b.ReportMetric(float64(last[0].cpu)/float64(pace)/1e3, "our-µs/op")
			b.ReportMetric(float64(last[1].cpu)/float64(pace)/1e3, "peer-µs/op")
			b.ReportMetric(allocs[len(allocs)/2], "our-B/op")
			b.ReportMetric(float64(last[0].allocs)/float64(pace), "our-allocs/op")
			b.ReportMetric(float64(last[0].moved)/float64(pace), "our-copied-B/op")
			b.ReportMetric(float64(last[1].allocated)/float64(pace), "peer-B/op")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func plus(u, v usage) usage {
	return usage{u.cpu + v.cpu, u.allocs + v.allocs, u.allocated + v.allocated, u.moved + v.moved}
}

// calibrate finds how many messages take about a second.
func calibrate(b *testing.B, p *process, size, window int) int {
	n := 2 * window
	for {
		start := time.Now()
		drive(b, p.address, request(size), window, n)
		if d := time.Since(start); d > 300*time.Millisecond {
			return max(window, int(float64(n)*float64(time.Second)/float64(d)))
		}
		n *= 2
	}
}

func measure(b *testing.B, p *process, text []byte, window, n int) usage {
	before := p.usage(b)
	drive(b, p.address, text, window, n)
	return p.usage(b).minus(before)
}

// request is an envelope of size bytes.
func request(size int) []byte {
	head := `{"method":"report","request":{"nodeId":"node-a","x":"`
	tail := `"},"response":null,"requestInstanceId":"uni_00112233445566778899aabb","correlation":{"id":"uni_a0a1a2a3a4a5a6a7a8a9aaab","phase":"request"}}`
	return []byte(head + strings.Repeat("x", max(0, size-len(head)-len(tail))) + tail)
}

// drive sends n messages with at most window in flight, and waits for as many.
func drive(b *testing.B, address string, text []byte, window, n int) {
	b.Helper()
	c := dialNode(b, address, "node-a")
	defer c.CloseNow()
	slots := make(chan struct{}, window)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range n {
			_, r, err := c.Reader(context.Background())
			if err != nil {
				b.Error(err)
				return
			}
			discard(r)
			<-slots
		}
	})
	for range n {
		slots <- struct{}{}
		if err := c.Write(context.Background(), websocket.MessageText, text); err != nil {
			b.Fatal(err)
		}
	}
	wg.Wait()
}

// newCloud answers every request with answer bytes, as cheaply as possible.
func newCloud(b *testing.B, answer int) string {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		b.Fatal(err)
	}
	pad := strings.Repeat("y", max(0, answer-190))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			return
		}
		c.SetReadLimit(-1)
		for {
			_, p, err := c.Read(context.Background())
			if err != nil {
				return
			}
			tail := p[bytes.LastIndex(p, []byte(`"requestInstanceId"`)):]
			tail = bytes.Replace(tail, []byte(`"phase":"request"`), []byte(`"phase":"response"`), 1)
			out := fmt.Appendf(nil, `{"method":"report","request":null,"response":{"x":"%s"},%s`, pad, tail)
			if c.Write(context.Background(), websocket.MessageText, out) != nil {
				return
			}
		}
	})}
	go server.Serve(listener)
	b.Cleanup(func() { server.Close() })
	return listener.Addr().(*net.TCPAddr).String()
}
