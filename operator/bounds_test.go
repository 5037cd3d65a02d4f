package operator

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket/carriertest"
)

// occupy opens n connections that have had an answer and rest.
func (r *rig) occupy(n int) []*raw {
	r.t.Helper()
	var all []*raw
	for range n {
		c := r.dial(remote)
		if got := c.do("GET /livez"); got.status != 200 {
			r.t.Fatalf("connection %d: %d", len(all)+1, got.status)
		}
		all = append(all, c)
	}
	return all
}

func TestConnectionsAreBounded(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, duties(says("cloudly", ok("session"))))
		crowd := r.occupy(maxConnections)
		// In reserve the probes are answered, once, and nothing else.
		for _, test := range []struct {
			path   string
			status int
			body   string
		}{
			{"/livez", 200, "ok\n"}, {"/healthz", 200, "ok\n"}, {"/readyz", 200, "ok\n"},
			{"/status", 503, "too many connections are open; probes are answered\n"},
			{"/", 503, "too many connections are open; probes are answered\n"},
			{"/debug/pprof/heap", 503, "too many connections are open; probes are answered\n"},
			{"/nowhere", 503, "too many connections are open; probes are answered\n"},
		} {
			c := r.dial(local)
			got := c.do("GET " + test.path)
			if got.status != test.status || got.body != test.body {
				t.Errorf("%s: %d %q", test.path, got.status, got.body)
			}
			if !c.closed() {
				t.Errorf("%s: the connection stays", test.path)
			}
			synctest.Wait()
		}
		if got := crowd[0].do("GET /readyz?verbose"); !strings.Contains(got.body, "failing operator connections: full: As many connections are open as there may be") {
			t.Errorf("the check: %s", got.body)
		}
		// Behind the reserve a connection is closed at once.
		for range reserve {
			r.dial(remote)
		}
		if c := r.dial(local); !c.closed() {
			t.Error("not closed")
		}
		if n := r.metrics.refusedConnections.Value(); n != 1 {
			t.Errorf("counted %d", n)
		}
		// One that goes makes room.
		for range reserve + 1 {
			crowd[0].Close()
			crowd = crowd[1:]
		}
		synctest.Wait()
		if got := r.get("/status"); got.status != 200 {
			t.Errorf("after it: %d", got.status)
		}
	})
}

// Clients that send their header a byte at a time, or nothing, are cut after
// headerWait, and probes are answered meanwhile (slowloris).
func TestSlowHeadersAreBounded(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		const slow = maxConnections + reserve - 1
		ended := make(chan time.Duration, slow)
		began := time.Now()
		for i := range slow {
			c := r.dial(remote)
			go func() {
				io.Copy(io.Discard, c)
				ended <- time.Since(began)
				c.Close()
			}()
			if i%2 == 0 {
				continue // half of them say nothing at all
			}
			go func() {
				for err := error(nil); err == nil; time.Sleep(100 * time.Millisecond) {
					_, err = io.WriteString(c, "G")
				}
			}()
		}
		time.Sleep(headerWait / 2)
		if got := r.get("/livez"); got.status != 200 {
			t.Errorf("a probe meanwhile: %d", got.status)
		}
		for range slow {
			if took := <-ended; took > headerWait+time.Second {
				t.Errorf("one was let be for %v", took)
			}
		}
		synctest.Wait() // a client sees the end before it is counted
		if n := r.metrics.connections.Value(); n != 0 {
			t.Errorf("%d are still open", n)
		}
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.occupy(1)[0]
		time.Sleep(idleWait - time.Second)
		if got := c.do("GET /livez"); got.status != 200 {
			t.Errorf("before the end: %d", got.status)
		}
		before := time.Now()
		if !c.closed() || time.Since(before) != idleWait {
			t.Errorf("ended after %v", time.Since(before))
		}
	})
}

// A client that does not read its answer is cut after answerWait, and its place
// is free then.
func TestSlowReadersAreBounded(t *testing.T) {
	for _, path := range []string{"/status", "/metrics", "/events", "/readyz?verbose", "/debug/pprof/heap"} {
		t.Run(path, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				r := newRig(t)
				c := r.dial(local)
				c.send(request("GET " + path))
				time.Sleep(answerWait - time.Second)
				if n := r.metrics.connections.Value(); n != 1 {
					t.Fatalf("%d connections", n)
				}
				time.Sleep(2 * time.Second)
				if n := r.metrics.connections.Value(); n != 0 || len(r.answers) != 0 || len(r.dumps) != 0 {
					t.Errorf("%d connections, %d answers, %d dumps", n, len(r.answers), len(r.dumps))
				}
			})
		})
	}
}

func TestLargeAnswersAreBounded(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Duties = []duty.Duty{says("cloudly", ok("session"))}
			c.Events = duty.NewEvents(duty.EventsConfig{})
		})
		r.publish(100) // so that a page is larger than net/http's buffer
		for range maxAnswers {
			r.dial(remote).send(request("GET /events"))
		}
		synctest.Wait()
		for _, path := range []string{"/status", "/events", "/metrics"} {
			got := r.get(path)
			if got.status != 503 || got.body != "too many answers are being given\n" || got.header.Get("Retry-After") != "1" {
				t.Errorf("%s: %d %q", path, got.status, got.body)
			}
		}
		for _, path := range []string{"/livez", "/readyz", "/", "/debug/pprof/goroutine"} {
			if got := r.get(path); got.status != 200 {
				t.Errorf("%s: %d", path, got.status)
			}
		}
		if r.count(routeStatus, overloaded) != 1 {
			t.Error("not counted")
		}
		time.Sleep(answerWait)
		if got := r.get("/status"); got.status != 200 {
			t.Errorf("after it: %d", got.status)
		}
	})
}

func TestLongHeadersAreRefused(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.dial(local)
		go io.WriteString(c, request("GET /livez", "X-Long: "+strings.Repeat("x", maxHeader+8<<10)))
		if got := c.receive("GET /livez"); got.status != 431 {
			t.Errorf("%d", got.status)
		}
		if got := r.get("/livez", "X-Long: "+strings.Repeat("x", maxHeader-200)); got.status != 200 {
			t.Errorf("a shorter one: %d", got.status)
		}
		c.Close()
	})
}
