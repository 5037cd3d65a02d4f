package duty_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// dropReason is a closed enum: its values are the labels of a counter.
type dropReason uint8

const (
	dropHairpin dropReason = iota
	dropNoGrant
	dropReasons // how many there are
)

func (r dropReason) String() string {
	return [dropReasons]string{dropHairpin: "hairpin", dropNoGrant: "no-grant"}[r]
}

// The types of a duty's events are constants, and their table goes to the
// catalogue of the relay.
const memberUp duty.EventType = "hub-member-up"

var eventKinds = []duty.EventKind{
	{Type: memberUp, Duty: "hub", Level: slog.LevelInfo, Says: "A member finished its handshake."},
}

// What a duty has at hand: a logger, events, and counters of its own.
func Example() {
	wall := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	log := duty.NewLogger(duty.LogConfig{Out: os.Stdout, Format: duty.Text, Wall: wall})
	catalogue, err := duty.NewCatalogue(eventKinds)
	if err != nil {
		panic(err)
	}
	events := duty.NewEvents(duty.EventsConfig{Catalogue: catalogue, Log: log, Wall: wall})
	metrics := duty.NewMetrics("hub")
	drops := duty.CounterBy(metrics, "relay_hub_dropped_packets_total", "Packets dropped, by reason.", "reason", dropReasons)

	events.Publish(memberUp, field.Node("worker-1"))
	drops.Of(dropNoGrant).Inc()
	log.With(field.Duty("hub")).Warn("probe-lost", field.Node("worker-1"), field.Attempt(3), field.Error(io.ErrUnexpectedEOF))

	for _, family := range metrics.Snapshot() {
		for _, sample := range family.Samples {
			fmt.Printf("%s{%s=%q} %v\n", family.Name, sample.Labels[0].Name, sample.Labels[0].Value, sample.Value)
		}
	}
	// Output:
	// time=2026-01-02T03:04:05.000Z level=INFO msg=hub-member-up duty=hub seq=1 node=worker-1
	// time=2026-01-02T03:04:05.000Z level=WARN msg=probe-lost duty=hub node=worker-1 attempt=3 error="unexpected EOF"
	// relay_hub_dropped_packets_total{reason="hairpin"} 0
	// relay_hub_dropped_packets_total{reason="no-grant"} 1
}

// Readiness is the fold of all checks: what is required must be OK, and
// advice is only shown.
func ExampleJudge() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := duty.Judge(now, []duty.Report{
		{Duty: "cloudly", Checks: []duty.Check{
			{Name: "session", State: duty.Failing, Reason: "relay-node-unknown", Hint: "Enrol the node first.", Since: now.Add(-time.Minute)},
		}},
		{Duty: "hub", Checks: []duty.Check{
			{Name: "udp-buffers", Advice: true, State: duty.Failing, Reason: "buffer-small", Hint: "Raise net.core.rmem_max."},
		}},
	})
	fmt.Println("ready:", r.Ready)
	for _, f := range r.Against() {
		fmt.Printf("%s/%s %s for %vs: %s. %s\n", f.Duty, f.Check, f.State, f.AgeSeconds, f.Reason, f.Hint)
	}
	// Output:
	// ready: false
	// cloudly/session failing for 60s: relay-node-unknown. Enrol the node first.
}
