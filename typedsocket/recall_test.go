package typedsocket

import (
	"context"
	"errors"
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
