package stream

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCutAtEveryFrame runs a transfer and cuts the socket before frame k, for
// every k there is. Nobody may wait for ever, and inBubble checks that neither
// a goroutine nor a buffer is left.
func TestCutAtEveryFrame(t *testing.T) {
	change := func(c *Config) { c.Window = 100_000 }
	for _, sh := range shapes {
		t.Run(sh.name, func(t *testing.T) {
			for k := 0; ; k++ {
				frames := 0
				inBubble(t, change, func(t *testing.T, p *pair) { frames = transferUntil(t, sh, p, k) })
				if t.Failed() {
					t.Fatalf("cut before frame %d", k)
				}
				if frames < k {
					if k < leastFrames {
						t.Fatalf("a transfer of only %d frames", frames)
					}
					return
				}
			}
		})
	}
}

// leastFrames is a transfer whose credits all came together: eight chunks, an
// open-ack, an end, a receipt, and a credit for each of the window's refills.
const leastFrames = 12

// transferUntil sends 500,000 bytes, cuts before frame k, and returns how many
// frames there were.
func transferUntil(t *testing.T, sh shape, p *pair, k int) int {
	var frames atomic.Int64
	cut, gone := make(chan struct{}), make(chan struct{})
	tap := func(frame) {
		if frames.Add(1) == int64(k) {
			close(cut)
			// The frame arrives while the socket breaks, or after it broke.
			if k%2 == 1 {
				<-gone
			}
		}
	}
	p.toClient.tap, p.toServer.tap = tap, tap
	created, err := sh.creator(p).Offer(Options{Direction: sh.creates})
	if err != nil {
		t.Fatal(err)
	}
	created.Published()
	opened, err := sh.opener(p).Open(created.Descriptor())
	if err != nil {
		t.Fatal(err)
	}
	sender, receiver := created, opened
	if sh.creates == Receive {
		sender, receiver = opened, created
	}
	var sendErr, takeErr error
	ended := make(chan struct{})
	go func() {
		both(func() { _, sendErr = sendAll(sender, noise(500_000, 9)) }, func() { _, takeErr = receiveAll(receiver) })
		close(ended)
	}()
	select {
	case <-cut:
		p.cut()
		close(gone)
	case <-ended:
	}
	start := time.Now()
	<-ended
	if waited := time.Since(start); waited > 0 {
		t.Errorf("a caller waited %s after the cut", waited)
	}
	for _, err := range []error{sendErr, takeErr} {
		// Before the verdict both must fail; the verdict itself may have
		// reached one end or both.
		if err != nil && !errors.Is(err, errCut) {
			t.Errorf("failed with %v", err)
		}
	}
	if frames.Load() < int64(k) && (sendErr != nil || takeErr != nil) {
		t.Errorf("uncut, yet sender: %v, receiver: %v", sendErr, takeErr)
	}
	if sendErr == nil && takeErr != nil {
		t.Errorf("the sender has a receipt of a receiver that failed: %v", takeErr)
	}
	return int(frames.Load())
}

func TestAfterTheCut(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		offered, _ := p.client.Offer(Options{Direction: Receive})
		descriptor := offered.Descriptor()
		p.cut()
		if err := offered.Err(); !errors.Is(err, errCut) {
			t.Errorf("offered: %v", err)
		}
		if _, err := p.client.Offer(Options{Direction: Send}); !errors.Is(err, errCut) {
			t.Errorf("Offer: %v", err)
		}
		if _, err := p.server.Open(descriptor); !errors.Is(err, errCut) {
			t.Errorf("Open: %v", err)
		}
		sc := newScript(t, Config{})
		sc.m.Close(nil)
		sc.m.Close(errCut)
		if err := sc.frame(kindCredit, 1, 0, ""); !errors.Is(err, ErrClosed) || errors.Is(err, errCut) {
			t.Errorf("Receive: %v", err)
		}
		if len(sc.heard()) != 0 {
			t.Error("a closed Mux spoke")
		}
	})
}

// B025: in many short lives of streams with slow links, windows that close, and an end
// from one of four sides at a random time, both ends always return.
func TestB025_RacesOfCloseAndCredit(t *testing.T) {
	seeds := 10_000
	if testing.Short() {
		seeds = 200
	}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 25))
		window := 1 + r.IntN(5000)
		inBubble(t, func(c *Config) { c.Window = window }, func(t *testing.T, p *pair) { race(t, p, r) })
		if t.Failed() {
			t.Fatalf("seed %d, window %d", seed, window)
		}
	}
}

func race(t *testing.T, p *pair, r *rand.Rand) {
	p.toClient.delay = time.Duration(r.IntN(3)) * time.Millisecond
	p.toServer.delay = time.Duration(r.IntN(3)) * time.Millisecond
	sender, receiver := shapes[r.IntN(4)].ends(t, p, nil)
	data := noise(r.IntN(30_000), r.Uint64())
	chunk := 1 + r.IntN(10_000)
	pause := time.Duration(r.IntN(2)) * time.Millisecond
	end, at := r.IntN(5), time.Duration(r.IntN(40))*time.Millisecond
	time.AfterFunc(at, func() {
		switch end {
		case 0:
			sender.Abort("race")
		case 1:
			receiver.Abort("race")
		case 2:
			receiver.Reject("race")
		case 3:
			p.cut()
		}
	})
	var sendErr, takeErr error
	var got []byte
	both(func() { _, sendErr = sendAll(sender, data) }, func() {
		p := make([]byte, chunk)
		for takeErr == nil {
			var n int
			n, takeErr = receiver.Read(p)
			got = append(got, p[:n]...)
			time.Sleep(pause)
		}
		if takeErr.Error() == "EOF" {
			_, takeErr = receiver.Accept()
		}
	})
	time.Sleep(time.Second) // the other end's last word
	synctest.Wait()
	if (sendErr == nil) != (sender.Err() == nil) || (takeErr == nil) != (receiver.Err() == nil) {
		t.Errorf("sender %v and %v, receiver %v and %v", sendErr, sender.Err(), takeErr, receiver.Err())
	}
	if end == 4 && (sendErr != nil || takeErr != nil) {
		t.Errorf("nobody ended it, yet sender: %v, receiver: %v", sendErr, takeErr)
	}
	if sendErr == nil && (takeErr != nil || string(got) != string(data)) {
		t.Errorf("the sender has a receipt for %d of %d bytes, receiver: %v", len(got), len(data), takeErr)
	}
	for _, m := range []*Mux{p.client, p.server} {
		if n := m.Stats().ProtocolErrors; n != 0 {
			t.Errorf("%d protocol errors between two of our own", n)
		}
	}
}
