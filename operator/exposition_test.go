package operator

import (
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket/carriertest"
)

type lane uint8

func (l lane) String() string { return [...]string{"direct", "datagram"}[l] }

// counting is what a duty counts.
func counting() *duty.Metrics {
	m := duty.NewMetrics("hub")
	m.Counter("relay_hub_forwarded_packets_total", "Packets that went on.").Add(7)
	m.Gauge("relay_hub_open_tunnels", "Tunnels that stand.").Set(-2)
	m.Seconds("relay_hub_compiling_seconds_total", "Time spent compiling.").Add(1500e6)
	m.Func("relay_hub_queue_bytes", "Bytes that wait.", func() float64 { return 12.5 })
	duty.CounterBy(m, "relay_hub_sent_bytes_total", `Bytes with a \ and "quotes".`, "lane", lane(2)).Of(1).Add(3)
	return m
}

// A histogram has its buckets, each holding those before it, its sum and its count.
func TestHistograms(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		m := duty.NewMetrics("hub")
		waits := duty.HistogramBy(m, "relay_hub_wait_seconds", "Time waited.", "lane", lane(2))
		for _, d := range []time.Duration{time.Microsecond, 20 * time.Microsecond, 30 * time.Microsecond, time.Hour} {
			waits.Of(1).Observe(d)
		}
		r := newRig(t, func(c *Config) { c.Metrics = []*duty.Metrics{m} })
		var got []string
		for line := range strings.Lines(r.get("/metrics").body) {
			if strings.HasPrefix(line, `relay_hub_wait_seconds`) && strings.Contains(line, `lane="datagram"`) {
				got = append(got, strings.TrimSpace(line))
			}
		}
		want := []string{
			`relay_hub_wait_seconds_bucket{lane="datagram",le="1.6e-05"} 1`,
			`relay_hub_wait_seconds_bucket{lane="datagram",le="3.2e-05"} 3`,
			`relay_hub_wait_seconds_bucket{lane="datagram",le="6.4e-05"} 3`,
		}
		if len(got) != len(duty.BucketBounds())+3 {
			t.Fatalf("%d lines: %q", len(got), got)
		}
		if diff := cmp.Diff(want, got[:3]); diff != "" {
			t.Error(diff)
		}
		want = []string{
			`relay_hub_wait_seconds_bucket{lane="datagram",le="16.777216"} 3`,
			`relay_hub_wait_seconds_bucket{lane="datagram",le="+Inf"} 4`,
			`relay_hub_wait_seconds_sum{lane="datagram"} 3600.000051`,
			`relay_hub_wait_seconds_count{lane="datagram"} 4`,
		}
		if diff := cmp.Diff(want, got[len(got)-4:]); diff != "" {
			t.Error(diff)
		}
	})
}

// relayLines are the lines of an exposition that are about the relay.
func relayLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, "relay_") && !strings.Contains(line, "relay_operator_") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestMetricsAsTheyAreWritten(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.Build = Build{Version: "1.2.3", Revision: "abc"}
			c.Metrics = []*duty.Metrics{counting(), nil}
			c.Duties = []duty.Duty{says("cloudly", ok("session"))}
		})
		text := r.get("/metrics").body
		want := `# HELP relay_build_info What the relay was built from; the value is always 1.
# TYPE relay_build_info gauge
relay_build_info{goversion="` + runtime.Version() + `",revision="abc",version="1.2.3"} 1
# HELP relay_hub_compiling_seconds_total Time spent compiling.
# TYPE relay_hub_compiling_seconds_total counter
relay_hub_compiling_seconds_total 1.5
# HELP relay_hub_forwarded_packets_total Packets that went on.
# TYPE relay_hub_forwarded_packets_total counter
relay_hub_forwarded_packets_total 7
# HELP relay_hub_open_tunnels Tunnels that stand.
# TYPE relay_hub_open_tunnels gauge
relay_hub_open_tunnels -2
# HELP relay_hub_queue_bytes Bytes that wait.
# TYPE relay_hub_queue_bytes gauge
relay_hub_queue_bytes 12.5
# HELP relay_hub_sent_bytes_total Bytes with a \\ and "quotes".
# TYPE relay_hub_sent_bytes_total counter
relay_hub_sent_bytes_total{lane="datagram"} 3
relay_hub_sent_bytes_total{lane="direct"} 0
# HELP relay_ready Whether every required check is ok, as /readyz answers: 1 or 0.
# TYPE relay_ready gauge
relay_ready 1
`
		if diff := cmp.Diff(want, relayLines(text)); diff != "" {
			t.Error(diff)
		}
		for _, name := range []string{"process_start_time_seconds", "process_open_fds", "go_goroutines", "go_info{", "go_memstats_heap_alloc_bytes", "relay_operator_http_requests_total{"} {
			if !strings.Contains(text, "\n"+name) {
				t.Errorf("no %s", name)
			}
		}
		r.SetDraining()
		if text := r.get("/metrics").body; !strings.Contains(text, "\nrelay_ready 0\n") {
			t.Error("ready while draining")
		}
	})
}

func TestMetricsInOpenMetrics(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Metrics = []*duty.Metrics{counting()} })
		got := r.get("/metrics", "Accept: application/openmetrics-text; version=1.0.0")
		if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/openmetrics-text; version=1.0.0") {
			t.Errorf("type %s", kind)
		}
		if !strings.Contains(got.body, "# TYPE relay_hub_sent_bytes counter\n") || !strings.HasSuffix(got.body, "# EOF\n") {
			t.Errorf("%s", relayLines(got.body))
		}
		if got := r.get("/metrics", "Accept-Encoding: gzip"); got.header.Get("Content-Encoding") != "" {
			t.Error("compressed")
		}
		if got := r.get("/metrics?name[]=relay_ready").body; strings.Count(got, "\n") != 3 {
			t.Errorf("one metric alone: %s", got)
		}
	})
}

// The names of the whole relay are held to what promtool's check demands.
func TestMetricsPassTheLint(t *testing.T) {
	carriertest.Bubble(t, func(t *testing.T) {
		log := duty.NewLogger(duty.LogConfig{Level: slog.LevelError})
		events := duty.NewEvents(duty.EventsConfig{})
		r := newRig(t, func(c *Config) { c.Metrics = []*duty.Metrics{counting(), log.Metrics(), events.Metrics()} })
		problems, err := testutil.GatherAndLint(newRegistry(r.Operator))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
		bad := duty.NewMetrics("hub")
		bad.Counter("relay_hub_slept_weeks_total", "Long.")
		r.sets = append(r.sets, newSubject(bad, ""))
		if problems, err = testutil.GatherAndLint(newRegistry(r.Operator)); err != nil || len(problems) != 1 {
			t.Errorf("the lint does not look: %v, %v", problems, err)
		}
	})
}

// A mistake of one set costs that set alone, or a name that is taken.
func TestMetricsThatCannotBeHad(t *testing.T) {
	release := make(chan struct{})
	tests := []struct {
		name string
		set  func() *duty.Metrics
		how  fault
		lost uint64
	}{
		{"a panic", func() *duty.Metrics {
			m := duty.NewMetrics("tls")
			m.Func("relay_tls_queue_bytes", "x", func() float64 { panic("a secret!") })
			return m
		}, panicked, 0},
		{"no answer", func() *duty.Metrics {
			m := duty.NewMetrics("tls")
			m.Func("relay_tls_queue_bytes", "x", func() float64 { <-release; return 0 })
			return m
		}, unresponsive, 0},
		{"the same names", counting, answered, 5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			carriertest.Bubble(t, func(t *testing.T) {
				release = make(chan struct{})
				defer close(release)
				r := newRig(t, func(c *Config) { c.Metrics = []*duty.Metrics{counting(), test.set()} })
				got := r.get("/metrics")
				lines := strings.Split(relayLines(got.body), "\n")
				names := map[string]int{}
				for _, line := range lines {
					if name, _, found := strings.Cut(line, " "); found && !strings.HasPrefix(line, "#") {
						names[name]++
					}
				}
				want := []string{`relay_build_info{goversion="` + runtime.Version() + `",revision="unknown",version="unknown"}`,
					"relay_hub_compiling_seconds_total", "relay_hub_forwarded_packets_total", "relay_hub_open_tunnels", "relay_hub_queue_bytes",
					`relay_hub_sent_bytes_total{lane="datagram"}`, `relay_hub_sent_bytes_total{lane="direct"}`, "relay_ready"}
				if diff := cmp.Diff(want, slices.Sorted(maps.Keys(names))); diff != "" || got.status != 200 {
					t.Error(got.status, diff)
				}
				if n := r.metrics.questions.Of(askedMetrics, test.how).Value(); n == 0 {
					t.Errorf("not counted as %s", test.how)
				}
				if n := r.metrics.lostFamilies.Value(); n != test.lost {
					t.Errorf("%d names lost, want %d", n, test.lost)
				}
				if strings.Contains(got.body+r.log.String(), "secret!") {
					t.Error("leaked")
				}
			})
		})
	}
}
