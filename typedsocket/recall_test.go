package typedsocket

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A call that is recalled is not sent, nor sent again; one that has been sent gets its
// answer all the same, and still ends with its context.
func TestARecalledCallIsSentNoMore(t *testing.T) {
	for name, row := range map[string]struct {
		recall  time.Duration // after the call began; 0 for before it
		serve   func(r *Request)
		cancels bool // its context ends after 5 s
		want    error
		sends   int
		took    time.Duration
	}{
		"before it was sent": {0, echo, false, ErrRecalled, 0, 0},
		"before it was sent again": {time.Second, func(r *Request) { retryAfter(r, `{"waitForMs":2000,"reason":"starting"}`) }, false,
			ErrRecalled, 1, time.Second},
		"before it was asked for again": {time.Second, func(r *Request) {
			time.AfterFunc(2*time.Second, func() { retryAfter(r, `{"waitForMs":1,"reason":"starting"}`) })
		}, false, ErrRecalled, 1, 2 * time.Second},
		"while its answer is waited for": {time.Second, func(r *Request) { time.AfterFunc(2*time.Second, func() { echo(r) }) }, false,
			nil, 1, 2 * time.Second},
		"and its context ends": {time.Second, func(r *Request) { time.AfterFunc(time.Minute, func() { echo(r) }) }, true,
			context.DeadlineExceeded, 1, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sends := 0
				c, _ := pair(t, Config{Peer: "server"}, Config{Peer: "client", Handler: HandlerFunc(func(r *Request) { sends++; row.serve(r) })})
				recalled := make(chan struct{})
				if row.recall == 0 {
					close(recalled)
				} else {
					time.AfterFunc(row.recall, func() { close(recalled) })
				}
				ctx := context.Background()
				if row.cancels {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
					defer cancel()
				}
				start := time.Now()
				answer, err := c.Call(ctx, "m", []byte(`{}`), CallOptions{Recalled: recalled})
				took := time.Since(start)
				if answer != nil {
					answer.Release()
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if !errors.Is(err, row.want) || sends != row.sends || took != row.took {
					t.Errorf("%v after %d sends and %s, want %v after %d and %s", err, sends, took, row.want, row.sends, row.took)
				}
			})
		})
	}
}

// R54: a call that waits behind a peer which does not read is taken out of the queue when it
// is recalled, with its memory, and those before and behind it leave.
func TestR54_ARecalledCallLeavesTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		peer, s := newRig(t, Config{Peer: "server"}).raw()
		callLater(s, "first", CallOptions{}) // nobody reads: the writer is stalled in it
		recalled := make(chan struct{})
		before := s.Stats()
		second := callLater(s, "second", CallOptions{Recalled: recalled})
		callLater(s, "third", CallOptions{})
		close(recalled)
		synctest.Wait()
		select {
		case err := <-second:
			if !errors.Is(err, ErrRecalled) {
				t.Error(err)
			}
		default:
			t.Error("the call waits on")
		}
		if now := s.Stats(); now.Pending != before.Pending+1 || now.QueuedOwn == 0 {
			t.Errorf("%+v", now)
		}
		for _, want := range []string{"first", "third"} {
			if got := read(t, peer); !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		synctest.Wait()
		if now := s.Stats(); now.QueuedOwn != 0 || now.FramesOut != 2 {
			t.Errorf("%+v", now)
		}
	})
}
