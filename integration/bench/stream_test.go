package bench

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"serve.zone/relay/typedsocket"
	"serve.zone/relay/typedsocket/stream"
)

func discard(r io.Reader) { io.Copy(io.Discard, r) }

// sinkRole takes streams, and plain POST bodies, and throws them away.
func sinkRole(string) http.HandlerFunc {
	take := typedsocket.HandlerFunc(func(r *typedsocket.Request) {
		in, err := r.Socket().Streams().Open(r.Body())
		if err != nil {
			r.Fail()
			return
		}
		r.Answer([]byte(`{}`))
		go func() {
			if _, err := io.Copy(io.Discard, in); err == nil {
				in.Accept()
			}
		}()
	})
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/hashed" {
			io.Copy(sha256.New(), r.Body)
			return
		}
		if r.Method == http.MethodPost {
			discard(r.Body)
			return
		}
		typedsocket.Accept(w, r, typedsocket.Config{Peer: "sender", Streams: true, Handler: take})
	}
}

// BenchmarkStream compares a stream of 256 MiB, hashed at both ends and
// accepted by receipt, with io.Copy of as much into the body of an HTTP
// request over the same TLS: throughput of ours divided by the peer's, whose
// ends hash too, or do not.
func BenchmarkStream(b *testing.B) {
	const size = 256 << 20
	p := start(b, "sink", "")
	var hashed, plain []float64
	var ours, peers time.Duration
	for b.Loop() {
		for range rounds {
			ours = timed(func() { sendStream(b, p.address, size) })
			peers = timed(func() { post(b, p.address+"/hashed", sha256.New(), size) })
			hashed = append(hashed, float64(peers)/float64(ours))
			peers = timed(func() { post(b, p.address+"/", io.Discard, size) })
			plain = append(plain, float64(peers)/float64(ours))
		}
	}
	slices.Sort(hashed)
	slices.Sort(plain)
	b.ReportMetric(hashed[len(hashed)/2], "ratio-to-hashed")
	b.ReportMetric(plain[len(plain)/2], "ratio-to-plain")
	b.ReportMetric(float64(size)/ours.Seconds()/1e6, "our-MB/s")
	b.ReportMetric(float64(size)/peers.Seconds()/1e6, "peer-MB/s")
	b.ReportMetric(0, "ns/op")
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func sendStream(b *testing.B, address string, size int64) {
	s, err := typedsocket.Connect(context.Background(), typedsocket.Dial{URL: "wss://" + address + "/",
		TLS: &tls.Config{InsecureSkipVerify: true}, Config: typedsocket.Config{Peer: "sink", Streams: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { s.Close(typedsocket.CloseNormal, ""); <-s.Done() }()
	out, err := s.Streams().Offer(stream.Options{Direction: stream.Send})
	if err != nil {
		b.Fatal(err)
	}
	a, err := s.Call(context.Background(), "put", out.Descriptor(), typedsocket.CallOptions{Streams: []*stream.Stream{out}})
	if err != nil {
		b.Fatal(err)
	}
	a.Release()
	if n, err := io.Copy(out, io.LimitReader(zeros{}, size)); err != nil || n != size {
		b.Fatal(n, err)
	}
	if _, err := out.CloseSend(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func post(b *testing.B, address string, tee io.Writer, size int64) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodPost, "https://"+address, io.TeeReader(io.LimitReader(zeros{}, size), tee))
	if err != nil {
		b.Fatal(err)
	}
	request.ContentLength = size
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		b.Fatal(err)
	}
	response.Body.Close()
}

// zeros is endless and costs nothing.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
