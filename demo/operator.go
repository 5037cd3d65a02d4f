package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"serve.zone/relay/operator/client"
)

// Where facts come from. Peers go by their own names.
const (
	fromStatus  = "/status"
	fromEvents  = "/events"
	fromReady   = "/readyz"
	fromMetrics = "/metrics"
	fromExplain = "/explain"
	fromRelay   = "relay" // its process: how Run returned
	fromNodes   = "nodes" // all of them
)

// document is what the relay answers to /status, with every section that the
// demonstration reads.
type document struct{ client.Document }

// whole names the first of those sections that the relay did not state, and why.
func (d document) whole() error {
	s := d.Duties
	for _, section := range []struct {
		duty   string
		stated bool
	}{
		{"cloudly", s.Cloudly != nil}, {"escrow", s.Escrow != nil}, {"forward", s.Forward != nil}, {"hub", s.Hub != nil}, {"ingress", s.Ingress != nil},
	} {
		if section.stated {
			continue
		}
		reason := "without a reason"
		for _, m := range d.Missing {
			if m.Duty == section.duty {
				reason = m.Reason
			}
		}
		return mismatch("the section of "+section.duty+" in /status", "none: %s", reason)
	}
	return nil
}

// member returns the member of that name, or one of which nothing is known.
func (d document) member(name string) client.HubMember {
	for _, m := range d.Duties.Hub.Members {
		if m.Node == name {
			return m
		}
	}
	return client.HubMember{}
}

// drops is how many packets of a member were dropped for a reason.
func drops(m client.HubMember, reason string) uint64 {
	for _, d := range m.Dropped {
		if d.Reason == reason {
			return d.Packets
		}
	}
	return 0
}

// node returns the carried node of that name, and false when it is not carried.
func (d document) node(name string) (client.CarriedNode, bool) {
	for _, n := range d.Duties.Forward.Nodes {
		if n.ID == name {
			return n, true
		}
	}
	return client.CarriedNode{}, false
}

// console reads the operator endpoint of the relay, as an operator would.
type console struct{ client.Client }

// errPartial is a status that this build cannot read whole; that of the relay in this
// process never is one.
var errPartial = errors.New("read /status: it has another schema, or a member of another type")

// status asks for the status document. One that was not understood whole, or that lacks a
// section, is an error: its zeros would pass for facts.
func (c console) status(ctx context.Context) (document, error) {
	text, err := c.Status(ctx)
	if err != nil {
		return document{}, err
	}
	d, err := client.ReadDocument(text)
	if err != nil {
		return document{}, err
	}
	if d.Partial {
		return document{}, errPartial
	}
	read := document{d}
	return read, read.whole()
}

// until asks for the status document again and again until look finds in it what it
// wants, and returns that document.
func (c console) until(ctx context.Context, look func(document) error) (document, error) {
	var d document
	err := eventually(ctx, settleWait, func() error {
		var err error
		if d, err = c.status(ctx); err != nil {
			return err
		}
		return look(d)
	})
	return d, err
}

// happening is an event with the fields that the demonstration shows.
type happening struct {
	client.Event `json:"-"`
	Address      string  `json:"address"`
	Node         string  `json:"node"`
	Sequence     int64   `json:"sequence"`
	Count        int     `json:"count"`
	Reason       string  `json:"reason"`
	Seconds      float64 `json:"durationSeconds"`
}

// next returns the number of the next event.
func (c console) next(ctx context.Context) (uint64, error) {
	var from uint64
	for {
		page, err := c.Events(ctx, from)
		if err != nil || len(page.Events) == 0 {
			return page.Next, err
		}
		from = page.Next
	}
}

// since returns the events of a type, from a number on.
func (c console) since(ctx context.Context, from uint64, kind string) ([]happening, error) {
	var found []happening
	for {
		page, err := c.Events(ctx, from)
		if err != nil || len(page.Events) == 0 {
			return found, err
		}
		for _, e := range page.Events {
			if e.Type != kind {
				continue
			}
			h := happening{Event: e}
			if len(e.Fields) > 0 {
				if err := json.Unmarshal(e.Fields, &h); err != nil {
					return nil, fmt.Errorf("read /events: %w", err)
				}
			}
			found = append(found, h)
		}
		from = page.Next
	}
}

// awaitEvent returns the first event of a type, from a number on.
func (c console) awaitEvent(ctx context.Context, from uint64, kind string) (happening, error) {
	var first happening
	err := eventually(ctx, settleWait, func() error {
		found, err := c.since(ctx, from, kind)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return mismatch("the event "+kind, "none in /events from number %d on", from)
		}
		if first = found[0]; first.Time.IsZero() {
			return mismatch("the time of the event "+kind, "none")
		}
		return nil
	})
	return first, err
}
