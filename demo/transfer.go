package demo

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// transfer is a download that is looked at while it runs.
type transfer struct {
	bytes  atomic.Int64
	cancel context.CancelFunc
	ended  chan struct{}
}

// begin begins a download that never ends by itself.
func (c *cluster) begin(ctx context.Context, m *member) *transfer {
	ctx, cancel := context.WithCancel(ctx)
	t := &transfer{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		response, err := get(ctx, m.stack.DialContext, c.site.url(endlessPage))
		if err != nil {
			return
		}
		defer response.Body.Close()
		io.Copy(counter{&t.bytes}, response.Body)
	}()
	return t
}

// stop ends the download and returns when it has ended.
func (t *transfer) stop() {
	t.cancel()
	<-t.ended
}

// counter counts what is written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

// silence is how long nothing has to come for a transfer to count as stopped. What
// was under way behind the hub arrives within milliseconds, and a sender that is
// merely slow repeats itself several times in it.
const silence = time.Second

// silent waits until nothing has come for a while, and returns how much has come in all.
func (t *transfer) silent(ctx context.Context) (int64, error) {
	last, since := t.bytes.Load(), time.Now()
	err := eventually(ctx, settleWait, func() error {
		if n := t.bytes.Load(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < silence {
			return mismatch("a transfer that has stopped", "%d bytes, and more coming", last)
		}
		return nil
	})
	return last, err
}
