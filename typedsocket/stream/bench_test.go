package stream

import (
	"context"
	"crypto/sha256"
	"io"
	"testing"
	"time"

	"serve.zone/relay/typedsocket/buffer"
)

const benchBytes = 64 << 20

// zeros is a source without cost of its own.
type zeros struct{ left int }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), z.left)
	z.left -= n
	return n, nil
}

// copyPipe is the yardstick: io.Copy through an in-memory pipe, in the same
// chunks, with a SHA-256 at each end when hashing is set, as a stream has.
func copyPipe(b *testing.B, hashing bool) time.Duration {
	start := time.Now()
	r, w := io.Pipe()
	in, out := io.Writer(w), io.Writer(plainWriter{io.Discard})
	if hashing {
		in, out = io.MultiWriter(sha256.New(), w), io.MultiWriter(sha256.New(), io.Discard)
	}
	go func() {
		_, err := io.CopyBuffer(plainWriter{in}, &zeros{benchBytes}, make([]byte, ChunkSize))
		w.CloseWithError(err)
	}()
	n, err := io.CopyBuffer(plainWriter{out}, plainReader{r}, make([]byte, ChunkSize))
	if n != benchBytes || err != nil {
		b.Fatal(n, err)
	}
	return time.Since(start)
}

// through moves the same bytes through two Muxes.
func through(b *testing.B) time.Duration {
	start := time.Now()
	p := newPair(nil)
	p.start()
	defer p.cut()
	s, err := p.client.Offer(Options{Direction: Send})
	if err != nil {
		b.Fatal(err)
	}
	r, err := p.server.Open(s.Descriptor())
	if err != nil {
		b.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := s.ReadFrom(&zeros{benchBytes})
		if err == nil {
			_, err = s.CloseSend(context.Background())
		}
		sent <- err
	}()
	if n, err := r.WriteTo(io.Discard); n != benchBytes || err != nil {
		b.Fatal(n, err)
	}
	if _, err := r.Accept(); err != nil {
		b.Fatal(err)
	}
	if err := <-sent; err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// BenchmarkStream moves 64 MiB through two Muxes and, in the same run, through
// an in-memory pipe: as it is, and with a SHA-256 at each end, which is the
// least a stream must do beyond moving bytes.
func BenchmarkStream(b *testing.B) {
	var stream, bare, hashed time.Duration
	b.SetBytes(benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		stream += through(b)
		b.StopTimer()
		bare += copyPipe(b, false)
		hashed += copyPipe(b, true)
		b.StartTimer()
	}
	b.ReportMetric(float64(stream)/float64(bare), "x-pipe")
	b.ReportMetric(float64(stream)/float64(hashed), "x-hashed-pipe")
}

// BenchmarkReceive is what the socket's reader spends on a full data frame.
func BenchmarkReceive(b *testing.B) {
	p := newPair(nil)
	r, err := p.server.Open([]byte(openable))
	if err != nil {
		b.Fatal(err)
	}
	chunk := make([]byte, ChunkSize)
	b.SetBytes(ChunkSize)
	b.ReportAllocs()
	at := uint64(0)
	for b.Loop() {
		h := header(kindData, r.number, at)
		m := buffer.Of(chunk)
		m.Wrap(h[:], nil)
		if err := p.server.Receive(m); err != nil {
			b.Fatal(err)
		}
		at += ChunkSize
		// What reading costs is the other benchmark's.
		p.server.mu.Lock()
		r.read = at
		r.permit = at + Window
		p.server.stats.Held -= r.in.drop(false)
		p.server.mu.Unlock()
	}
	p.server.Close(nil)
	p.toClient.close()
}

const openable = `{"_isVirtualStream":true,"protocol":"virtual-stream-v1","streamId":"b","creatorDirection":"send","transport":{"relayStream":1}}`
