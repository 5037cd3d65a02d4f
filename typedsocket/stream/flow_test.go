package stream

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"serve.zone/relay/typedsocket/buffer"
)

// creditWatch looks at the frames of one stream on both wires.
type creditWatch struct {
	t               *testing.T
	mu              sync.Mutex
	sent, permit    uint64
	credits, pauses int // permissions that were given, and used up
}

func (w *creditWatch) see(f frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch f.kind {
	case kindData:
		w.sent += uint64(len(f.payload))
		if w.sent > w.permit {
			w.t.Errorf("%d bytes sent with %d permitted", w.sent, w.permit)
		}
		if w.sent == w.permit {
			w.pauses++
		}
	case kindCredit, kindOpenAck:
		if f.value > 0 {
			w.permit = f.value
			w.credits++
		}
	}
}

// B040: a sender of 20 MiB to a reader that takes a tenth of a second for each 64 KiB
// runs out of credit again and again, and each time goes on.
func TestB040_EveryPauseIsFollowedByAResume(t *testing.T) {
	for _, sh := range shapes {
		t.Run(sh.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, p *pair) {
				const total = 20 << 20
				watch := &creditWatch{t: t}
				p.toClient.tap, p.toServer.tap = watch.see, watch.see
				sender, receiver := sh.ends(t, p, nil)
				data := noise(total, 40)
				done := make(chan error, 1)
				go func() {
					_, err := sendAll(sender, data)
					done <- err
				}()
				var got bytes.Buffer
				chunk := make([]byte, 64<<10)
				for {
					time.Sleep(100 * time.Millisecond)
					n, err := io.ReadFull(receiver, chunk)
					got.Write(chunk[:n])
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				receiver.Accept()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got.Bytes(), data) {
					t.Error("other bytes arrived")
				}
				// The first credit is the window, each further one half of it
				// more, up to the one at the last half that is read.
				if want := 1 + total/(Window/2); watch.credits != want {
					t.Errorf("%d credits, want %d", watch.credits, want)
				}
				if want := total/(Window/2) - 1; watch.pauses != want {
					t.Errorf("the credit ran out %d times, want %d", watch.pauses, want)
				}
			})
		})
	}
}

func TestSmallWindows(t *testing.T) {
	for _, window := range []int{1, 2, 3, 1000, ChunkSize + 1} {
		inBubble(t, func(c *Config) { c.Window = window }, func(t *testing.T, p *pair) {
			sender, receiver := shapes[1].ends(t, p, nil)
			data := noise(20*window+7, uint64(window))
			var got []byte
			var sendErr, takeErr error
			both(func() { _, sendErr = sendAll(sender, data) }, func() { got, takeErr = receiveAll(receiver) })
			if sendErr != nil || takeErr != nil || !bytes.Equal(got, data) {
				t.Errorf("window %d: %v, %v, %d bytes of %d", window, sendErr, takeErr, len(got), len(data))
			}
		})
	}
}

// TestSenderQueuesABoundedAmount stalls the socket under a sender.
func TestSenderQueuesABoundedAmount(t *testing.T) {
	for _, size := range []int{1, 4096, 4097, ChunkSize, 2 * Window} {
		inBubble(t, nil, func(t *testing.T, p *pair) {
			sender, _ := shapes[0].ends(t, p, nil)
			p.toServer.set(func() { p.toServer.stalled = true })
			go func() {
				for {
					if _, err := sender.Write(make([]byte, size)); err != nil {
						return
					}
				}
			}()
			synctest.Wait()
			if p.toServer.peak > MaxQueued || p.toServer.peak <= MaxQueued-2*chunkMemory {
				t.Errorf("writes of %d: %d bytes of memory queued, limit %d", size, p.toServer.peak, MaxQueued)
			}
			payload := 0
			for _, f := range p.toServer.bulk {
				payload += f.b.Len() - HeaderSize
			}
			if payload > 256<<10 {
				t.Errorf("writes of %d: %d bytes queued", size, payload)
			}
			if size == ChunkSize && payload != 256<<10 {
				t.Errorf("full chunks: only %d bytes queued", payload)
			}
		})
	}
}

// TestEndWaitsForItsPlaceToo: the end is a frame like the others.
func TestEndWaitsForItsPlaceToo(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		p.toServer.set(func() { p.toServer.stalled = true })
		go sendAll(sender, make([]byte, 4*ChunkSize))
		synctest.Wait()
		if p.toServer.peak > MaxQueued {
			t.Errorf("%d bytes of memory queued, limit %d", p.toServer.peak, MaxQueued)
		}
		p.toServer.set(func() { p.toServer.stalled = false })
		if _, err := receiveAll(receiver); err != nil {
			t.Error(err)
		}
	})
}

func TestChunkMemoryIsThatOfAFullChunk(t *testing.T) {
	b := buffer.Get(HeaderSize + ChunkSize)
	defer b.Release()
	if b.Size() != chunkMemory {
		t.Errorf("the buffer of a full chunk takes %d bytes", b.Size())
	}
}

// TestInboxMemoryFollowsItsBytes holds the inbox against a list of bytes, and
// its memory against what it promises.
func TestInboxMemoryFollowsItsBytes(t *testing.T) {
	before := buffer.Lent()
	rapid.Check(t, func(t *rapid.T) {
		var in inbox
		var want []byte
		held, next := 0, byte(0)
		largest := rapid.SampledFrom([]int{1, 100, 5000, ChunkSize}).Draw(t, "largest")
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "read") == 0 {
				chunk := in.next()
				if chunk == nil {
					if len(want) != 0 {
						t.Fatalf("nothing to read of %d bytes", len(want))
					}
					continue
				}
				n := rapid.IntRange(0, len(chunk)).Draw(t, "n")
				if !bytes.Equal(chunk[:n], want[:n]) {
					t.Fatal("other bytes")
				}
				want = want[n:]
				held -= in.read(n)
			} else {
				// The memory a socket reads into need not fit the message.
				b := buffer.Get(rapid.SampledFrom([]int{0, ChunkSize, Window}).Draw(t, "memory"))
				p := make([]byte, rapid.IntRange(1, largest).Draw(t, "size"))
				for i := range p {
					next++
					p[i] = next
				}
				b.Append(p)
				want = append(want, p...)
				held += in.put(b)
			}
			if limit := 2*len(want) + len(want)/4 + 3*chunkMemory; held > limit {
				t.Fatalf("%d bytes of memory for %d bytes", held, len(want))
			}
		}
		if held -= in.drop(false); held != 0 {
			t.Fatalf("%d bytes of memory unaccounted for", held)
		}
	})
	if buffer.Lent() != before {
		t.Error("buffers were not released")
	}
}

// TestSecretsStaySecret: memory that a secret was copied to is erased as well.
func TestSecretsStaySecret(t *testing.T) {
	for name, size := range map[string]int{"put to the bytes before": 6, "moved to smaller memory": 6000} {
		var in inbox
		in.put(buffer.Of([]byte("open")))
		b := buffer.Get(Window)
		b.Append([]byte(strings.Repeat("secret", size/6)))
		b.Erase()
		in.put(b)
		if last := in.queue[len(in.queue)-1]; !last.Secret() || last.Size() > chunkMemory {
			t.Errorf("%s: secret %v, memory %d", name, last.Secret(), last.Size())
		}
		if want := 1 + size/6000; len(in.queue) != want {
			t.Errorf("%s: %d buffers", name, len(in.queue))
		}
		in.drop(false)
	}
}

// TestCreditInFramesOfOneByteCostsLittle is the worst a peer can do with its
// window.
func TestCreditInFramesOfOneByteCostsLittle(t *testing.T) {
	sc := newScript(t, Config{})
	s := sc.opened(Receive)
	for i := range Window {
		if err := sc.frame(kindData, s.number, uint64(i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if held := sc.m.Stats().Held; held > Window*5/4 {
		t.Errorf("%d bytes of memory for a window of %d", held, Window)
	}
	sc.m.Close(nil)
	if held := sc.m.Stats().Held; held != 0 {
		t.Errorf("%d bytes held after Close", held)
	}
}

func TestEndedStreamKeepsItsPlaceUntilItsFramesLeft(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		p.toServer.set(func() { p.toServer.stalled = true })
		for range MaxStreams {
			s, err := p.client.Offer(Options{Direction: Send})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.server.Open(s.Descriptor()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, err := s.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			s.Abort("gone")
		}
		if _, err := p.client.Offer(Options{Direction: Send}); err == nil {
			t.Error("a ninth stream with eight in the carrier")
		}
		p.toServer.set(func() { p.toServer.stalled = false })
		synctest.Wait()
		s, err := p.client.Offer(Options{Direction: Send})
		if err != nil {
			t.Fatal(err)
		}
		s.Discard()
	})
}

// TestCarrierThatRefuses ends the stream by name instead of losing a frame.
func TestCarrierThatRefuses(t *testing.T) {
	steps := map[string]func(p *pair, sender, receiver *Stream) error{
		"data": func(p *pair, sender, _ *Stream) error {
			p.toServer.set(func() { p.toServer.full = true })
			_, err := sender.Write([]byte("x"))
			return err
		},
		"end": func(p *pair, sender, _ *Stream) error {
			p.toServer.set(func() { p.toServer.full = true })
			_, err := sender.CloseSend(context.Background())
			return err
		},
		"credit": func(p *pair, sender, receiver *Stream) error {
			go sender.Write(make([]byte, Window))
			synctest.Wait()
			p.toClient.set(func() { p.toClient.full = true })
			_, err := io.Copy(io.Discard, receiver)
			return err
		},
		"accept": func(p *pair, sender, receiver *Stream) error {
			go sender.CloseSend(context.Background())
			io.Copy(io.Discard, receiver)
			p.toClient.set(func() { p.toClient.full = true })
			_, err := receiver.Accept()
			return err
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, p *pair) {
				sender, receiver := shapes[0].ends(t, p, nil)
				if err := step(p, sender, receiver); !isAny(err, errFull) {
					t.Errorf("got %v", err)
				}
				c, s := p.client.Stats(), p.server.Stats()
				if n := c.Ended[OutcomeSocket] + s.Ended[OutcomeSocket]; n != 1 {
					t.Errorf("%d ends ended by it", n)
				}
				ended := p.client
				if s.Ended[OutcomeSocket] > 0 {
					ended = p.server
				}
				if live := ended.Stats().Live; live != 0 {
					t.Errorf("%d live", live)
				}
			})
		})
	}
	t.Run("open-ack", func(t *testing.T) {
		inBubble(t, nil, func(t *testing.T, p *pair) {
			s, _ := p.client.Offer(Options{Direction: Send})
			p.toClient.set(func() { p.toClient.full = true })
			if _, err := p.server.Open(s.Descriptor()); !isAny(err, errFull) {
				t.Errorf("got %v", err)
			}
		})
	})
}
