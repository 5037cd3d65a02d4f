package duty

import (
	"sync"
	"time"

	"serve.zone/relay/duty/field"
)

// Bounds of the events that are held. An outage of four hours with 256 nodes
// on a grid of ten minutes has 6,144 releases and as many acknowledgements,
// which an operator should still find whole afterwards, at about 400 bytes
// each.
const (
	DefaultEventCount = 16384
	DefaultEventBytes = 8 << 20
)

// EventsConfig is what Events are made from. The zero value works.
type EventsConfig struct {
	Catalogue *Catalogue       // the known types
	Log       *Logger          // where each event is also written as a line
	Wall      func() time.Time // time.Now if nil; it must not block
	Count     int              // DefaultEventCount if 0
	Bytes     int              // DefaultEventBytes if 0
}

// Events is the sequence of what happened, of which the latest part is held.
// It is safe for concurrent use. Publish waits for nobody who reads; it waits
// for the log's writer, which LineWriter makes one that never waits.
type Events struct {
	catalogue *Catalogue
	log       *Logger
	wall      func() time.Time
	start     time.Time // of this life of the relay
	metrics   eventMetrics

	mu      sync.Mutex
	ring    ring          // guarded by mu
	changed chan struct{} // guarded by mu; nil while nobody waits
}

type eventMetrics struct {
	set                                            *Metrics
	published, overwritten, unknown, withheld, cut *Counter
	held, bytes                                    *Gauge
}

// NewEvents returns an empty sequence.
func NewEvents(c EventsConfig) *Events {
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Count <= 0 {
		c.Count = DefaultEventCount
	}
	if c.Bytes <= 0 {
		c.Bytes = DefaultEventBytes
	}
	m := NewMetrics("events")
	return &Events{
		catalogue: c.Catalogue, log: c.Log, wall: c.Wall, start: c.Wall().UTC(),
		ring: ring{maxCount: c.Count, maxBytes: c.Bytes},
		metrics: eventMetrics{
			set:         m,
			published:   m.Counter("relay_events_published_records_total", "Events published since the start."),
			overwritten: m.Counter("relay_events_overwritten_records_total", "Events no longer held because later ones took their place."),
			unknown:     m.Counter("relay_events_undeclared_records_total", "Events of a type that no duty declared: a mistake in the relay."),
			withheld:    m.Counter("relay_events_withheld_values_total", "Values of events that were not fit to be shown."),
			cut:         m.Counter("relay_events_cut_fields_total", "Fields left out of events that had too many: a mistake in the relay."),
			held:        m.Gauge("relay_events_held_records", "Events that can be read now."),
			bytes:       m.Gauge("relay_events_held_bytes", "Memory of the events that can be read now."),
		},
	}
}

// Metrics returns what the events count about themselves.
func (e *Events) Metrics() *Metrics { return e.metrics.set }

// Publish records that something happened and returns its sequence number.
// The same event is written as a line of the log, at the level of its kind.
func (e *Events) Publish(t EventType, fields ...field.Field) uint64 {
	kind, declared := e.catalogue.kind(t)
	if !declared {
		e.metrics.unknown.Inc()
	}
	event := Event{Type: kind.Type, Duty: kind.Duty, Level: kind.Level, Fields: e.own(fields)}

	e.mu.Lock()
	event.Time = e.wall().UTC() // under the lock: times go in the order of the numbers
	seq, overwritten := e.ring.push(event)
	e.metrics.published.Inc()
	e.metrics.overwritten.Add(uint64(overwritten))
	e.metrics.held.Set(int64(len(e.ring.held)))
	e.metrics.bytes.Set(int64(e.ring.bytes))
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
	e.mu.Unlock()

	e.log.line(kind.Level, string(kind.Type), field.Join(
		[]field.Field{field.Duty(kind.Duty), field.Seq(seq)}, event.Fields))
	return seq
}

// own returns the fields as the ring keeps them: bounded in number, each with
// a text of its own.
func (e *Events) own(fields []field.Field) field.List {
	joined := field.Join(fields)
	if len(joined) > maxEventFields {
		e.metrics.cut.Add(uint64(len(joined) - maxEventFields))
		joined = joined[:maxEventFields]
	}
	for i, f := range joined {
		if f.IsWithheld() {
			e.metrics.withheld.Inc()
		}
		joined[i] = f.Clone()
	}
	return joined
}

// Page is what Since found.
type Page struct {
	Events []Event `json:"events"` // in order, never nil
	// Lost is how many of the events asked for are no longer held.
	Lost uint64 `json:"lost"`
	// Next is the number to ask for next.
	Next uint64 `json:"next"`
	// Start is when this life of the relay began. Numbers begin anew with it: a
	// reader that sees another one than before asks again from 1.
	Start time.Time `json:"start"`
}

// Since returns the events numbered seq or later. Numbers begin at 1, so 0
// and 1 ask for all. The fields are shared and must not be changed.
func (e *Events) Since(seq uint64) Page {
	e.mu.Lock()
	defer e.mu.Unlock()
	events, lost := e.ring.since(seq)
	if events == nil {
		events = []Event{}
	}
	return Page{Events: events, Lost: lost, Next: e.ring.last + 1, Start: e.start}
}

// Changed returns a channel that is closed when the next event is published.
// A reader takes the channel first, then reads Since, then waits: so no event
// falls between the two.
func (e *Events) Changed() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}
