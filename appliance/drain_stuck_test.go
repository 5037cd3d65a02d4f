package appliance

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket/carriertest"
)

// hole is a line that can swallow: from then on nobody reads what is written into
// it, and nobody closes it either, as when a network goes away.
type hole struct {
	swallows atomic.Bool
	filled   chan struct{} // closed at the end of the test
}

func newHole(t *testing.T) *hole {
	h := &hole{filled: make(chan struct{})}
	t.Cleanup(func() { close(h.filled) })
	return h
}

// through returns a dial by which everything passes the hole, which holds size
// bytes in each direction.
func (h *hole) through(dial func(context.Context, string, string) (net.Conn, error), size int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, n, a string) (net.Conn, error) {
		far, err := dial(ctx, n, a)
		if err != nil {
			return nil, err
		}
		near, middle := carriertest.Pipe(size)
		go h.pump(far, middle)
		go h.pump(middle, far)
		return near, nil
	}
}

func (h *hole) pump(to, from net.Conn) {
	defer to.Close()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if h.swallows.Load() {
			<-h.filled
			return
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// R97: a drain takes ten seconds at most, whoever takes nothing any more, and the
// process ends as one that was told to.
func TestR97_DrainEndsThoughAPeerTakesNothing(t *testing.T) {
	large := `{"x":"` + strings.Repeat("x", 200<<10) + `"}`
	for name, c := range map[string]struct {
		upstream bool
		busy     bool   // a request of the node waits for Cloudly
		unsent   string // a body that does not fit the line any more
	}{
		"Cloudly, idle":                   {upstream: true},
		"Cloudly, with bytes that wait":   {upstream: true, unsent: large},
		"Cloudly, busy":                   {upstream: true, busy: true},
		"Cloudly, busy, bytes that wait":  {upstream: true, busy: true, unsent: large},
		"the node, idle":                  {},
		"the node, busy":                  {busy: true},
		"the node, with bytes that wait":  {unsent: large},
		"the node, busy, bytes that wait": {busy: true, unsent: large},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := newHole(t)
				r := newRig(t, change{relay: func(cfg *Config) {
					if c.upstream {
						cfg.Dial = h.through(cfg.Dial, 8<<10)
					}
				}})
				r.registered(0)
				a := r.dialling("node-a", func(cfg *simulate.PalletConfig) {
					if !c.upstream {
						cfg.Dial = h.through(cfg.Dial, 8<<10)
					}
				})
				if _, err := a.WaitRegistered(r.soon(), 0); err != nil {
					t.Fatal(err)
				}
				r.cloudly.Script(report, simulate.Ignore(), simulate.Ignore())
				if c.busy {
					go a.Send(r.soon(), report, []byte(`{}`))
				}
				synctest.Wait()
				h.swallows.Store(true)
				if c.unsent != "" {
					if c.upstream {
						go a.Send(r.soon(), report, []byte(c.unsent))
					} else {
						go r.cloudly.CallNode(r.soon(), "node-a", "applyRuntimeAssignment", []byte(c.unsent))
					}
				}
				time.Sleep(time.Second)
				began := time.Now()
				if err := r.halt(); err != nil {
					t.Errorf("run: %v", err)
				}
				if took := time.Since(began); took > drainWait {
					t.Errorf("drained for %s\n%s", took, r.log)
				} else {
					t.Logf("drained for %s", took)
				}
			})
		})
	}
}
