package rig

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// Event is one event of the relay.
type Event struct {
	Seq    uint64         `json:"seq"`
	Time   time.Time      `json:"time"`
	Type   string         `json:"type"`
	Duty   string         `json:"duty"`
	Level  string         `json:"level"` // as log/slog writes it: "INFO"
	Fields map[string]any `json:"fields"`
}

// Text returns a field that is a text, "" for none.
func (e Event) Text(key string) string {
	text, _ := e.Fields[key].(string)
	return text
}

// Events asks for the events numbered from or later, all pages of them. Numbers
// begin anew with every start of the relay.
func (r *Rig) Events(from uint64) []Event {
	r.t.Helper()
	events, err := r.eventsFrom(from)
	if err != nil {
		r.t.Fatal(err)
	}
	return events
}

func (r *Rig) eventsFrom(from uint64) ([]Event, error) {
	var all []Event
	for {
		body, err := r.fetchOK(fmt.Sprintf("/events?fromSeq=%d", from))
		if err != nil {
			return nil, err
		}
		var page struct {
			Events []Event `json:"events"`
			Lost   uint64  `json:"lost"`
			Next   uint64  `json:"next"`
		}
		switch err := json.Unmarshal(body, &page); {
		case err != nil:
			return nil, fmt.Errorf("/events: %w", err)
		case page.Lost > 0:
			return nil, fmt.Errorf("/events: %d events from %d on are no longer held", page.Lost, from)
		case len(page.Events) == 0 || page.Next <= from:
			return append(all, page.Events...), nil
		}
		all, from = append(all, page.Events...), page.Next
	}
}

// NextSeq returns the number of the next event, to give to Events or WaitEvent
// later.
func (r *Rig) NextSeq() uint64 {
	r.t.Helper()
	next := uint64(1)
	if events := r.Events(0); len(events) > 0 {
		next = events[len(events)-1].Seq + 1
	}
	return next
}

// WaitEvent waits for an event of a type, numbered from or later, and returns the
// first.
func (r *Rig) WaitEvent(event string, from uint64) Event {
	r.t.Helper()
	var found Event
	r.Eventually("event "+event, func() error {
		events, err := r.eventsFrom(from)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(events, func(e Event) bool { return e.Type == event })
		if i < 0 {
			return fmt.Errorf("not among %d events", len(events))
		}
		found = events[i]
		return nil
	})
	return found
}
