package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"serve.zone/relay/typedsocket/buffer"
)

// step brings a stream somewhere in its life. It returns both ends.
type step struct {
	name string
	go_  func(t *testing.T, sh shape, p *pair) (sender, receiver *Stream)
}

var steps = []step{
	{"just opened", func(t *testing.T, sh shape, p *pair) (*Stream, *Stream) {
		created, opened := sh.both(t, p, nil) // the open-ack may still be on its way
		if sh.creates == Send {
			return created, opened
		}
		return opened, created
	}},
	{"open", func(t *testing.T, sh shape, p *pair) (*Stream, *Stream) { return sh.ends(t, p, nil) }},
	{"bytes arrived", func(t *testing.T, sh shape, p *pair) (*Stream, *Stream) {
		sender, receiver := sh.ends(t, p, nil)
		go sender.Write(make([]byte, 100_000))
		synctest.Wait()
		return sender, receiver
	}},
	{"both wait", func(t *testing.T, sh shape, p *pair) (*Stream, *Stream) {
		sender, receiver := sh.ends(t, p, nil)
		go receiver.Read(make([]byte, 1))
		synctest.Wait()
		return sender, receiver
	}},
	{"out of credit", func(t *testing.T, sh shape, p *pair) (*Stream, *Stream) {
		sender, receiver := sh.ends(t, p, nil)
		go sender.Write(make([]byte, 2*Window))
		synctest.Wait()
		return sender, receiver
	}},
	{"half read", func(t *testing.T, sh shape, p *pair) (*Stream, *Stream) {
		sender, receiver := sh.ends(t, p, nil)
		go sender.Write(make([]byte, 2*Window))
		io.ReadFull(receiver, make([]byte, 100_000))
		synctest.Wait()
		return sender, receiver
	}},
	{"ended", func(t *testing.T, sh shape, p *pair) (*Stream, *Stream) {
		sender, receiver := sh.ends(t, p, nil)
		go sendAll(sender, make([]byte, 100_000))
		synctest.Wait()
		return sender, receiver
	}},
	{"drained", func(t *testing.T, sh shape, p *pair) (*Stream, *Stream) {
		sender, receiver := sh.ends(t, p, nil)
		go sendAll(sender, make([]byte, 100_000))
		io.Copy(io.Discard, receiver)
		return sender, receiver
	}},
}

// verdicts are the ways in which one end may stop it.
var verdicts = []struct {
	name  string
	do    func(sender, receiver *Stream)
	check func(sender, receiver error) bool
}{
	{"sender aborts", func(s, _ *Stream) { s.Abort("why not") }, func(s, r error) bool {
		return aborted(s, false, "why not") && aborted(r, true, "why not")
	}},
	{"receiver aborts", func(_, r *Stream) { r.Abort("why not") }, func(s, r error) bool {
		return aborted(s, true, "why not") && aborted(r, false, "why not")
	}},
	{"receiver rejects", func(_, r *Stream) { r.Reject("bad bytes") }, func(s, r error) bool {
		return rejected(s, true, "bad bytes") && rejected(r, false, "bad bytes")
	}},
}

func aborted(err error, remote bool, reason string) bool {
	var e *AbortedError
	return errors.As(err, &e) && e.Remote == remote && e.Reason == reason
}

func rejected(err error, remote bool, reason string) bool {
	var e *RejectedError
	return errors.As(err, &e) && e.Remote == remote && e.Reason == reason
}

// TestVerdictsAtEveryStep stops a stream at every step in every way. Both ends
// must learn it, whoever waits must return, and no more than two control
// frames may pass about a stream that ended (B043).
func TestVerdictsAtEveryStep(t *testing.T) {
	for _, sh := range shapes {
		for _, step := range steps {
			for _, v := range verdicts {
				t.Run(fmt.Sprintf("%s/%s/%s", sh.name, step.name, v.name), func(t *testing.T) {
					inBubble(t, nil, func(t *testing.T, p *pair) {
						sender, receiver := step.go_(t, sh, p)
						var control atomic.Int64
						tap := func(f frame) {
							if f.kind.terminal() {
								control.Add(1)
							}
						}
						p.toClient.set(func() { p.toClient.tap = tap })
						p.toServer.set(func() { p.toServer.tap = tap })
						v.do(sender, receiver)
						checkStopped(t, step.name, sender, receiver, v.check)
						if n := control.Load(); n < 1 || n > 2 {
							t.Errorf("%d frames ended the stream", n)
						}
					})
				})
			}
		}
	}
}

func checkStopped(t *testing.T, step string, sender, receiver *Stream, check func(s, r error) bool) {
	t.Helper()
	<-sender.Done()
	<-receiver.Done()
	synctest.Wait()
	// A creator that gave up before it knew of the opening can only say that
	// it offers no such stream.
	unknown := step == "just opened" && (aborted(sender.Err(), true, ReasonNotOffered) || aborted(receiver.Err(), true, ReasonNotOffered))
	if !unknown && !check(sender.Err(), receiver.Err()) {
		t.Errorf("sender: %v, receiver: %v", sender.Err(), receiver.Err())
	}
	want := sender.Err()
	if _, err := sender.Write([]byte("x")); err != want {
		t.Errorf("Write: %v", err)
	}
	if _, err := sender.CloseSend(context.Background()); err != want {
		t.Errorf("CloseSend: %v", err)
	}
	want = receiver.Err()
	if _, err := receiver.Read(make([]byte, 1)); err != want {
		t.Errorf("Read: %v", err)
	}
	if _, err := receiver.Accept(); err != want {
		t.Errorf("Accept: %v", err)
	}
	if err := receiver.Reject("again"); err != want {
		t.Errorf("Reject: %v", err)
	}
	if err := receiver.KeepAlive(); err != want {
		t.Errorf("KeepAlive: %v", err)
	}
	sender.Abort("again")
	if sender.m.Stats().Live+receiver.m.Stats().Live != 0 {
		t.Error("a stream that ended still lives")
	}
}

func TestAcceptNeedsADrainedStream(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		if _, err := receiver.Accept(); !errors.Is(err, ErrNotDrained) {
			t.Errorf("before any byte: %v", err)
		}
		done := make(chan error)
		go func() {
			_, err := sendAll(sender, []byte("abc"))
			done <- err
		}()
		synctest.Wait()
		if _, err := receiver.Accept(); !errors.Is(err, ErrNotDrained) {
			t.Errorf("before the bytes were read: %v", err)
		}
		io.ReadFull(receiver, make([]byte, 3))
		if _, err := receiver.Accept(); !errors.Is(err, ErrNotDrained) {
			t.Errorf("before the end was read: %v", err)
		}
		if got, err := receiveAll(receiver); len(got) != 0 || err != nil {
			t.Errorf("the end: %q, %v", got, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		first, _ := receiver.Accept()
		if again, err := receiver.Accept(); err != nil || string(again.Raw) != string(first.Raw) {
			t.Errorf("accepted again: %+v, %v", again, err)
		}
		if again, err := sender.CloseSend(context.Background()); err != nil || string(again.Raw) != string(first.Raw) {
			t.Errorf("closed again: %+v, %v", again, err)
		}
		if err := receiver.Reject("late"); !errors.Is(err, ErrEnded) {
			t.Errorf("rejected after acceptance: %v", err)
		}
		if _, err := sender.Write([]byte("x")); !errors.Is(err, ErrEnded) {
			t.Errorf("written after acceptance: %v", err)
		}
	})
}

func TestCallsOfTheOtherDirection(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		var errs []error
		note := func(_ any, err error) { errs = append(errs, err) }
		note(receiver.Write(nil))
		note(receiver.ReadFrom(nil))
		note(receiver.CloseSend(context.Background()))
		note(sender.Read(nil))
		note(sender.WriteTo(nil))
		note(sender.Accept())
		note(nil, sender.Reject(""))
		note(nil, sender.KeepAlive())
		for i, err := range errs {
			if !errors.Is(err, ErrDirection) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if sender.Err() != nil || receiver.Err() != nil {
			t.Error("such a call ended the stream")
		}
	})
}

func TestOneCallAtATime(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		go receiver.Read(make([]byte, 1))
		synctest.Wait()
		if _, err := receiver.Read(make([]byte, 1)); !errors.Is(err, ErrBusy) {
			t.Errorf("second Read: %v", err)
		}
		go sender.Write(make([]byte, 2*Window))
		synctest.Wait()
		if _, err := sender.CloseSend(context.Background()); !errors.Is(err, ErrBusy) {
			t.Errorf("CloseSend beside Write: %v", err)
		}
	})
}

func TestWriteAfterTheEnd(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, _ := shapes[0].ends(t, p, nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := sender.CloseSend(ctx)
		if !aborted(err, false, ReasonCancelled) || !errors.Is(err, context.Canceled) {
			t.Errorf("CloseSend of an ended context: %v", err)
		}
		if _, err := sender.Write([]byte("x")); !aborted(err, false, ReasonCancelled) {
			t.Errorf("Write: %v", err)
		}
	})
}

func TestAbortAll(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		s1, r1 := shapes[0].ends(t, p, nil)
		s2, r2 := shapes[3].ends(t, p, nil)
		offered, err := p.client.Offer(Options{Direction: Send})
		if err != nil {
			t.Fatal(err)
		}
		p.client.AbortAll("draining")
		synctest.Wait()
		for _, s := range []*Stream{s1, r2, offered, r1, s2} {
			if remote := s.m == p.server; !aborted(s.Err(), remote, "draining") {
				t.Errorf("%v", s.Err())
			}
		}
	})
}

// TestTooManyBytesAreStoppedAtOnce: not only at the end.
func TestTooManyBytesAreStoppedAtOnce(t *testing.T) {
	want := sumOf([]byte("abc"))
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, &want)
		var wrong *IntegrityError
		if _, err := sender.Write([]byte("abcd")); !errors.As(err, &wrong) {
			t.Errorf("Write: %v", err)
		}
		<-receiver.Done()
	})
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, &want)
		sender.integrity = nil
		if _, err := sender.Write([]byte("abcd")); err != nil {
			t.Errorf("Write: %v", err)
		}
		<-receiver.Done()
		var wrong *IntegrityError
		if _, err := receiver.Read(make([]byte, 4)); !errors.As(err, &wrong) {
			t.Errorf("Read: %v", err)
		}
	})
}

// slowWriter holds a write until it is let go.
type slowWriter struct {
	begun, goOn chan struct{}
	got         []byte
}

func (w *slowWriter) Write(p []byte) (int, error) {
	close(w.begun)
	<-w.goOn
	w.got = append(w.got, p...)
	return len(p), nil
}

// TestAbortUnderAWrite ends a stream while WriteTo is inside the writer: the
// bytes the writer looks at stay until it is done with them.
func TestAbortUnderAWrite(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		data := noise(3*ChunkSize, 3)
		sender.Write(data)
		w := &slowWriter{begun: make(chan struct{}), goOn: make(chan struct{})}
		done := make(chan error)
		go func() {
			_, err := receiver.WriteTo(w)
			done <- err
		}()
		<-w.begun
		sender.Abort("stop")
		<-receiver.Done()
		// What was given back too early would be filled with other bytes now.
		var others []*buffer.Buffer
		for range 8 {
			others = append(others, buffer.Of(make([]byte, ChunkSize)))
		}
		close(w.goOn)
		if err := <-done; !aborted(err, true, "stop") {
			t.Errorf("WriteTo: %v", err)
		}
		if !bytes.Equal(w.got, data[:len(w.got)]) {
			t.Error("the writer saw other bytes")
		}
		for _, b := range others {
			b.Release()
		}
	})
}

// slowReader holds a read until it is let go.
type slowReader struct{ begun, goOn chan struct{} }

func (r slowReader) Read(p []byte) (int, error) {
	close(r.begun)
	<-r.goOn
	return copy(p, "late"), nil
}

// TestAbortUnderARead ends a stream while ReadFrom is inside the source.
func TestAbortUnderARead(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, p *pair) {
		sender, receiver := shapes[0].ends(t, p, nil)
		r := slowReader{make(chan struct{}), make(chan struct{})}
		done := make(chan error)
		go func() {
			n, err := sender.ReadFrom(r)
			if n != 0 {
				t.Errorf("%d bytes counted", n)
			}
			done <- err
		}()
		<-r.begun
		receiver.Reject("stop")
		<-sender.Done()
		close(r.goOn)
		if err := <-done; !rejected(err, true, "stop") {
			t.Errorf("ReadFrom: %v", err)
		}
		if sent := sender.m.Stats().BytesOut; sent != 0 {
			t.Errorf("%d bytes queued after the end", sent)
		}
	})
}

func TestIntegrityIsHeldOnBothSides(t *testing.T) {
	right := []byte("the right bytes")
	cases := []struct {
		name   string
		sent   string
		reason string
	}{
		{"short", "the right byte", ReasonIntegrityLength},
		{"empty", "", ReasonIntegrityLength},
		{"long", "the right bytes!", ReasonIntegrityLength},
		{"other bytes", "the wrong bytes", ReasonIntegrityDigest},
	}
	differs := func(err error, reason string) bool {
		var e *IntegrityError
		return errors.As(err, &e) && e.Reason == reason
	}
	want := sumOf(right)
	for _, sh := range shapes {
		for _, c := range cases {
			t.Run(sh.name+"/"+c.name, func(t *testing.T) {
				// The sender's own check.
				inBubble(t, nil, func(t *testing.T, p *pair) {
					sender, receiver := sh.ends(t, p, &want)
					if _, err := sendAll(sender, []byte(c.sent)); !differs(err, c.reason) {
						t.Errorf("sender: %v", err)
					}
					if got, err := receiveAll(receiver); !aborted(err, true, c.reason) {
						t.Errorf("receiver: %q, %v", got, err)
					}
				})
				// The receiver's, against a sender that checks nothing.
				inBubble(t, nil, func(t *testing.T, p *pair) {
					sender, receiver := sh.ends(t, p, &want)
					sender.integrity = nil
					var sendErr, takeErr error
					both(func() { _, sendErr = sendAll(sender, []byte(c.sent)) },
						func() { _, takeErr = receiveAll(receiver) })
					if !rejected(sendErr, true, c.reason) || !differs(takeErr, c.reason) {
						t.Errorf("sender: %v, receiver: %v", sendErr, takeErr)
					}
				})
			})
		}
	}
}
