package operator

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket/carriertest"
)

// page is what a test looks at of /events.
type page struct {
	Events []struct{ Seq uint64 }
	Lost   uint64
	Next   uint64
	Start  time.Time
}

func (r *rig) page(target string) page {
	r.t.Helper()
	got := r.get(target)
	var p page
	if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != 200 {
		r.t.Fatalf("%s: %d %v", target, got.status, err)
	}
	return p
}

// numbers are the sequence numbers of a page, as "1..3".
func (p page) numbers() string {
	if len(p.Events) == 0 {
		return ""
	}
	for i, e := range p.Events {
		if e.Seq != p.Events[0].Seq+uint64(i) {
			return fmt.Sprint(p.Events)
		}
	}
	return fmt.Sprintf("%d..%d", p.Events[0].Seq, p.Events[len(p.Events)-1].Seq)
}

func (r *rig) publish(n int) {
	for range n {
		r.events.Publish(EventFailed)
	}
}

func TestEventsAsTheyAreWritten(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		want := `{"events":[{"seq":1,"time":"2000-01-01T00:00:00Z","type":"operator-bound","duty":"operator","level":"INFO","fields":{"address":"127.0.0.1:9465"}}],` +
			`"lost":0,"next":2,"start":"2000-01-01T00:00:00Z"}` + "\n"
		if diff := cmp.Diff(want, r.get("/events").body); diff != "" {
			t.Error(diff)
		}
		if got := r.get("/events?fromSeq=2").body; got != `{"events":[],"lost":0,"next":2,"start":"2000-01-01T00:00:00Z"}`+"\n" {
			t.Error(got)
		}
	})
}

func TestPagesOfEvents(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Events = duty.NewEvents(duty.EventsConfig{Count: 5000}) })
		r.publish(5099) // and operator-bound, so that 1 to 100 are overwritten
		for _, test := range []struct {
			target, numbers string
			lost, next      uint64
		}{
			{"/events", "101..1100", 100, 1101},
			{"/events?fromSeq=0", "101..1100", 100, 1101},
			{"/events?fromSeq=101&limit=3", "101..103", 0, 104},
			{"/events?fromSeq=51&limit=1", "101..101", 50, 102},
			{"/events?fromSeq=5098&limit=3", "5098..5100", 0, 5101},
			{"/events?fromSeq=5100", "5100..5100", 0, 5101},
			{"/events?fromSeq=5101", "", 0, 5101},
			{"/events?fromSeq=9007199254740991", "", 0, 5101},
			{"/events?limit=4096&fromSeq=1001", "1001..5096", 0, 5097},
		} {
			if p := r.page(test.target); p.numbers() != test.numbers || p.Lost != test.lost || p.Next != test.next {
				t.Errorf("%s: %s, lost %d, next %d", test.target, p.numbers(), p.Lost, p.Next)
			}
		}
		// Page by page nothing is missed and nothing comes twice.
		seen := uint64(100)
		for next := uint64(101); ; {
			p := r.page(fmt.Sprintf("/events?limit=777&fromSeq=%d", next))
			if len(p.Events) == 0 {
				break
			}
			for _, e := range p.Events {
				if seen++; e.Seq != seen {
					t.Fatalf("%d came as %d", seen, e.Seq)
				}
			}
			next = p.Next
		}
		if seen != 5100 {
			t.Errorf("read up to %d", seen)
		}
	})
}

func TestWaitingForEvents(t *testing.T) {
	tests := []struct {
		name   string
		target string
		during func(*rig) // after 3 s of waiting
		want   string
		took   time.Duration
	}{
		{"there are some already", "/events?fromSeq=1&wait=30", nil, "1..1", 0},
		{"one comes", "/events?fromSeq=2&wait=30", func(r *rig) { r.publish(1) }, "2..2", 3 * time.Second},
		{"several come", "/events?fromSeq=2&wait=30&limit=1", func(r *rig) { r.publish(2) }, "2..2", 3 * time.Second},
		{"none comes", "/events?fromSeq=2&wait=7", nil, "", 7 * time.Second},
		{"none comes for the longest time", "/events?fromSeq=2&wait=30", nil, "", 30 * time.Second},
		{"no wait", "/events?fromSeq=2&wait=0", nil, "", 0},
		{"an earlier life's reader is told at once", "/events?fromSeq=900&wait=30", nil, "", 0},
		{"draining of the relay is no reason", "/events?fromSeq=2&wait=8", func(r *rig) { r.SetDraining() }, "", 8 * time.Second},
		{"the endpoint leaves", "/events?fromSeq=2&wait=30", func(r *rig) {
			if err := r.Drain(r.t.Context()); err != nil {
				r.t.Error(err)
			}
		}, "", 3 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				r := newRig(t)
				before := time.Now()
				if test.during != nil {
					var wg sync.WaitGroup
					defer wg.Wait()
					wg.Go(func() { time.Sleep(3 * time.Second); test.during(r) })
				}
				if got := r.page(test.target).numbers(); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
				if took := time.Since(before); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
				if n := len(r.polls); n != 0 {
					t.Errorf("%d places are still taken", n)
				}
			})
		})
	}
}

// A client that goes frees its place at once.
func TestAWaitEndsWithItsClient(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.dial(local)
		c.send(request("GET /events?fromSeq=2&wait=30"))
		synctest.Wait()
		if n := len(r.polls); n != 1 {
			t.Fatalf("%d wait", n)
		}
		c.Close()
		synctest.Wait()
		if n := len(r.polls); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

func TestWaitsAreBounded(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t)
		var waiting []*raw
		for range maxPolls {
			c := r.dial(remote)
			c.send(request("GET /events?fromSeq=2&wait=30"))
			waiting = append(waiting, c)
		}
		synctest.Wait()
		got := r.get("/events?fromSeq=2&wait=30")
		if got.status != 503 || got.body != "too many requests are waiting for events\n" || got.header.Get("Retry-After") != "1" {
			t.Errorf("%d %q", got.status, got.body)
		}
		if r.count(routeEvents, overloaded) != 1 {
			t.Error("not counted")
		}
		// Whoever does not wait is answered.
		for _, target := range []string{"/events", "/events?fromSeq=2", "/events?fromSeq=1&wait=30", "/status", "/livez"} {
			if got := r.get(target); got.status != 200 {
				t.Errorf("%s: %d", target, got.status)
			}
		}
		if !strings.Contains(r.get("/status").body, `"polls":{"open":16,"limit":16}`) {
			t.Error("the status does not tell")
		}
		r.publish(1)
		for _, c := range waiting {
			if got := c.receive("GET /events"); got.status != 200 || !strings.Contains(got.body, `"seq":2`) {
				t.Errorf("%d %s", got.status, got.body)
			}
			c.Close()
		}
	})
}
