package forward

import (
	"slices"
	"strings"
	"time"

	"serve.zone/relay/contract"
)

// Status is this duty's part of the status document. Sizes are bytes.
type Status struct {
	Attached      bool     `json:"attached"` // a session to Cloudly stands
	Draining      bool     `json:"draining"`
	Nodes         []Node   `json:"nodes"`   // ordered by id, never nil
	Sockets       int      `json:"sockets"` // that forwarded a registration and are not gone yet
	InFlight      InFlight `json:"inFlight"`
	InFlightLimit int      `json:"inFlightLimitBytes"`
}

// InFlight is what waits for an answer.
type InFlight struct {
	NodeRequests    int `json:"nodeRequests"`
	CloudlyRequests int `json:"cloudlyRequests"`
	Bytes           int `json:"bytes"` // memory of the requests
}

// Node is one binding and what passed under it, since its socket registered
// first.
type Node struct {
	ID        string    `json:"id"`
	Since     time.Time `json:"since"`     // of the last acceptance
	Confirmed bool      `json:"confirmed"` // obtained from the session to Cloudly that stands, or stood last
	Moves     int       `json:"moves"`     // how often it came over a newer socket; many mean that it runs twice
	InFlight  InFlight  `json:"inFlight"`

	ToCloudly   Traffic `json:"toCloudly"`
	FromCloudly Traffic `json:"fromCloudly"`

	Refused       uint64               `json:"refused"`
	LastRefusal   contract.RefusalName `json:"lastRefusal,omitempty"`
	LastRefusedAt time.Time            `json:"lastRefusedAt,omitzero"`
}

// Traffic is what went one way.
type Traffic struct {
	Requests uint64 `json:"requests"`
	Bytes    uint64 `json:"bytes"` // of requests and answers
}

// Status returns the duty's part of the status document.
func (f *Forward) Status() any {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{
		Attached: f.table.attached, Draining: f.draining, Nodes: make([]Node, 0, len(f.table.bindings)),
		Sockets: len(f.peers), InFlight: f.total.load.shown(), InFlightLimit: allBytes,
	}
	for _, b := range f.table.bindings {
		p := b.socket
		s.Nodes = append(s.Nodes, Node{
			ID: b.node, Since: b.since.UTC(), Confirmed: b.confirmed, Moves: b.moves, InFlight: p.load.shown(),
			ToCloudly:   Traffic{Requests: p.carried[up], Bytes: p.bytes[up]},
			FromCloudly: Traffic{Requests: p.carried[down], Bytes: p.bytes[down]},
			Refused:     p.refused, LastRefusal: p.lastRefusal, LastRefusedAt: p.lastRefusedAt,
		})
	}
	slices.SortFunc(s.Nodes, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	return s
}

func (l load) shown() InFlight {
	return InFlight{NodeRequests: l.count[up], CloudlyRequests: l.count[down], Bytes: l.bytes}
}
