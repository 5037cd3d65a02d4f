package stream

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// within fails unless f takes exactly d.
func within(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took != d {
		t.Errorf("took %s, want %s", took, d)
	}
}

func TestStreamThatThePeerDoesNotOpen(t *testing.T) {
	for _, d := range []Direction{Send, Receive} {
		inBubble(t, nil, func(t *testing.T, p *pair) {
			s, err := p.client.Offer(Options{Direction: d})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // not published: the time does not run
			s.Published()
			s.Published()
			within(t, OpenLimit, func() {
				if d == Send {
					_, err = sendAll(s, []byte("x"))
				} else {
					_, err = receiveAll(s)
				}
			})
			if !errors.Is(err, ErrNotOpened) || !errors.Is(s.Err(), ErrNotOpened) {
				t.Errorf("got %v, then %v", err, s.Err())
			}
			// The peer opens no streams: the next is refused at once.
			within(t, 0, func() { _, err = p.client.Offer(Options{Direction: d}) })
			if !errors.Is(err, ErrNotOpened) {
				t.Errorf("the next Offer: %v", err)
			}
			if n := p.client.Stats().Ended[OutcomeNotOpened]; n != 1 {
				t.Errorf("%d streams not opened", n)
			}
			// Opening what the peer offers is another matter.
			theirs, _ := p.server.Offer(Options{Direction: Send})
			if _, err := p.client.Open(theirs.Descriptor()); err != nil {
				t.Errorf("Open: %v", err)
			}
			// It opens late after all: that stream is gone, the next is not.
			late, err := p.server.Open(s.Descriptor())
			if err != nil {
				t.Fatal(err)
			}
			<-late.Done()
			if !aborted(late.Err(), true, ReasonNotOffered) {
				t.Errorf("opened late: %v", late.Err())
			}
			if _, err := p.client.Offer(Options{Direction: d}); err != nil {
				t.Errorf("Offer to a peer that does open streams: %v", err)
			}
		})
	}
}

// TestPeerThatHasOpenedBeforeIsAskedAgain: one stream that lapses does not
// take the streams of a long session with it.
func TestPeerThatHasOpenedBeforeIsAskedAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		shapes[0].ends(t, p, nil)
		s, _ := p.client.Offer(Options{Direction: Send})
		s.Published()
		within(t, OpenLimit, func() { <-s.Done() })
		if _, err := p.client.Offer(Options{Direction: Send}); err != nil {
			t.Error(err)
		}
	})
}

func TestPeerQuickerThanTheCaller(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		s, _ := p.client.Offer(Options{Direction: Send})
		r, err := p.server.Open(s.Descriptor())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Published()
		time.Sleep(2 * OpenLimit)
		go sendAll(s, []byte("abc"))
		if got, err := receiveAll(r); string(got) != "abc" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestDiscard(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		s, _ := p.client.Offer(Options{Direction: Send})
		s.Discard()
		if err := s.Err(); !errors.Is(err, ErrDiscarded) {
			t.Error(err)
		}
		// Should the descriptor have left all the same, the peer learns it.
		r, err := p.server.Open(s.Descriptor())
		if err != nil {
			t.Fatal(err)
		}
		<-r.Done()
		if !aborted(r.Err(), true, ReasonNotOffered) {
			t.Error(r.Err())
		}
		sender, receiver := shapes[0].ends(t, p, nil)
		sender.Discard()
		<-receiver.Done()
		if !aborted(receiver.Err(), true, ReasonDiscarded) {
			t.Error(receiver.Err())
		}
	})
}

// TestIdle waits in each way there is for a peer that does nothing.
func TestIdle(t *testing.T) {
	waits := []struct {
		name string
		wait func(p *pair, sender, receiver *Stream) error
		peer func(sender, receiver *Stream) *Stream
	}{
		{"for credit", func(p *pair, s, _ *Stream) error {
			_, err := s.Write(make([]byte, Window+1))
			return err
		}, func(_, r *Stream) *Stream { return r }},
		{"for the carrier", func(p *pair, s, _ *Stream) error {
			p.toServer.set(func() { p.toServer.stalled = true })
			_, err := s.Write(make([]byte, Window))
			p.toServer.set(func() { p.toServer.stalled = false })
			return err
		}, func(_, r *Stream) *Stream { return r }},
		{"for the verdict", func(p *pair, s, _ *Stream) error {
			_, err := sendAll(s, []byte("x"))
			return err
		}, func(_, r *Stream) *Stream { return r }},
		{"for bytes", func(p *pair, _, r *Stream) error {
			_, err := r.Read(make([]byte, 1))
			return err
		}, func(s, _ *Stream) *Stream { return s }},
	}
	for _, w := range waits {
		t.Run(w.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, p *pair) {
				sender, receiver := shapes[0].ends(t, p, nil)
				time.Sleep(10 * IdleLimit) // nobody waits: nothing ends
				if sender.Err() != nil || receiver.Err() != nil {
					t.Fatal("ended while nobody waited")
				}
				var err error
				within(t, IdleLimit, func() { err = w.wait(p, sender, receiver) })
				if !errors.Is(err, ErrIdle) {
					t.Errorf("got %v", err)
				}
				peer := w.peer(sender, receiver)
				<-peer.Done()
				if !aborted(peer.Err(), true, ReasonIdle) {
					t.Errorf("the peer learns %v", peer.Err())
				}
			})
		})
	}
}

func TestProgressPutsIdlenessOff(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		go func() {
			for range 5 {
				time.Sleep(IdleLimit - time.Second)
				sender.Write([]byte("x"))
			}
		}()
		within(t, 5*(IdleLimit-time.Second)+IdleLimit, func() {
			n, err := io.Copy(io.Discard, receiver)
			if n != 5 || !errors.Is(err, ErrIdle) {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	})
}

// TestSlowReaderKeepsTheSender: a receiver that takes a byte now and then lets
// the sender wait longer than the limit only as often as it grants credit.
func TestSlowReaderKeepsTheSender(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		done := make(chan error, 1)
		go func() {
			_, err := sendAll(sender, make([]byte, 4*Window))
			done <- err
		}()
		half := make([]byte, Window/2)
		for {
			time.Sleep(IdleLimit - time.Second)
			if _, err := io.ReadFull(receiver, half); err != nil {
				break
			}
		}
		receiver.Accept()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestKeepAliveLetsStoringTakeLong(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		done := make(chan error, 1)
		go func() {
			_, err := sendAll(sender, []byte("abc"))
			done <- err
		}()
		io.Copy(io.Discard, receiver)
		for range 30 {
			time.Sleep(20 * time.Second)
			if err := receiver.KeepAlive(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := receiver.Accept(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		offered, _ := p.client.Offer(Options{Direction: Receive})
		if err := offered.KeepAlive(); err != nil {
			t.Errorf("before it was opened: %v", err)
		}
	})
}

func TestContextEndsTheWaitForTheVerdict(t *testing.T) {
	for _, sh := range shapes {
		inBubble(t, nil, func(t *testing.T, p *pair) {
			sender, receiver := sh.ends(t, p, nil)
			ctx, cancel := context.WithTimeout(context.Background(), 7*time.Second)
			defer cancel()
			within(t, 7*time.Second, func() {
				_, err := sender.CloseSend(ctx)
				if !aborted(err, false, ReasonCancelled) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
			<-receiver.Done()
			if !aborted(receiver.Err(), true, ReasonCancelled) {
				t.Error(receiver.Err())
			}
		})
	}
}

func TestCloseSendWaitsForTheOpening(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		s, _ := p.client.Offer(Options{Direction: Send})
		s.Published()
		time.AfterFunc(OpenLimit/2, func() {
			r, err := p.server.Open(s.Descriptor())
			if err != nil {
				t.Error(err)
				return
			}
			receiveAll(r)
		})
		within(t, OpenLimit/2, func() {
			if _, err := s.CloseSend(context.Background()); err != nil {
				t.Error(err)
			}
		})
	})
}
