package operator

import (
	"sync"
	"testing"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket/carriertest"
)

// Readers of every kind at once, while what they read changes: each has a whole
// answer, and none makes another one fail.
func TestReadersAtOnce(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		turns, asked := 0, 0
		r := newRig(t, func(c *Config) {
			c.Metrics = []*duty.Metrics{counting()}
			c.Duties = []duty.Duty{
				&stub{name: "cloudly", checks: func() []duty.Check {
					mu.Lock()
					defer mu.Unlock()
					if turns++; turns%2 == 0 {
						return []duty.Check{ok("session")}
					}
					return []duty.Check{unknownNode}
				}},
				&stub{name: "hub", status: func() any {
					mu.Lock()
					defer mu.Unlock()
					if asked++; asked%2 == 0 {
						panic("x")
					}
					return StubStatus{}
				}},
			}
		})
		var all sync.WaitGroup
		for _, path := range []string{"/livez", "/readyz", "/readyz?verbose&format=json", "/status", "/events?wait=1&fromSeq=2", "/metrics", "/", "/debug/pprof/goroutine?debug=1"} {
			for range 2 {
				all.Go(func() {
					c := r.dial(local)
					defer c.Close()
					for range 20 {
						got := c.do("GET " + path)
						ready := path == "/readyz" || path == "/readyz?verbose&format=json"
						busy := path == "/debug/pprof/goroutine?debug=1" // of which there is one at a time
						if got.status != 200 && !(got.status == 503 && (ready || busy)) {
							t.Errorf("%s: %d %s", path, got.status, got.body)
						}
						if busy && got.status == 503 {
							return // and the connection is closed
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
		}
		for range 20 {
			r.publish(1)
			time.Sleep(time.Millisecond)
		}
		r.SetDraining()
		all.Wait()
		if r.metrics.answered() == 0 || r.metrics.questions.Of(askedStatus, panicked).Value() == 0 {
			t.Error("nothing happened")
		}
	})
}
