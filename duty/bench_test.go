package duty

import (
	"testing"

	"serve.zone/relay/duty/field"
)

// What a duty pays for a counter, for a line nobody asked for, for a line
// that is written, and for an event.
func BenchmarkSaying(b *testing.B) {
	drops := CounterBy(NewMetrics("hub"), "relay_hub_dropped_packets_total", "Help.", "lane", laneCount)
	log := NewLogger(LogConfig{})
	log.core.budgets.limit.burst = 1 << 40 // what is measured is a line, not its suppression
	events := NewEvents(EventsConfig{})
	for name, do := range map[string]func(){
		"counter":       func() { drops.Of(datagram).Inc() },
		"line-disabled": func() { log.Debug("frame-read", field.Node("worker-1"), field.Bytes(500)) },
		"line-written":  func() { log.Info("node-bound", field.Node("worker-1"), field.Bytes(500)) },
		"event":         func() { events.Publish(nodeBound, field.Node("worker-1"), field.Bytes(500)) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}
