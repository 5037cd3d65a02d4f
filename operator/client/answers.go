package client

import (
	"encoding/json"
	"time"
)

// Readiness is the answer of /readyz, all checks included.
type Readiness struct {
	Ready    bool      `json:"ready"`
	Findings []Finding `json:"findings"`
}

// Finding is one check of one duty.
type Finding struct {
	Duty       string          `json:"duty"`
	Check      string          `json:"check"`
	Advice     bool            `json:"advice"` // never makes the relay not ready
	State      string          `json:"state"`  // ok, pending, failing
	Reason     string          `json:"reason"` // empty while State is ok
	Hint       string          `json:"hint"`   // empty while State is ok
	Facts      json.RawMessage `json:"facts"`  // an object of figures, or nil
	Since      time.Time       `json:"since"`  // zero if nobody knows
	AgeSeconds float64         `json:"ageSeconds"`
}

// Against returns the findings that keep the relay from being ready.
func (r Readiness) Against() []Finding {
	var against []Finding
	for _, f := range r.Findings {
		if !f.Advice && f.State != "ok" {
			against = append(against, f)
		}
	}
	return against
}

// Page is the answer of /events.
type Page struct {
	Events []Event   `json:"events"` // in order
	Lost   uint64    `json:"lost"`   // how many of those asked for are no longer held
	Next   uint64    `json:"next"`   // the number to ask for next
	Start  time.Time `json:"start"`  // of the relay's life; with another one numbers begin anew
}

// Event is something that happened.
type Event struct {
	Seq    uint64          `json:"seq"`
	Time   time.Time       `json:"time"`
	Type   string          `json:"type"`
	Duty   string          `json:"duty"`
	Level  string          `json:"level"`  // DEBUG, INFO, WARN, ERROR
	Fields json.RawMessage `json:"fields"` // an object, or nil
}

// Explanation is the answer of /explain: what becomes of packets from one address to
// another, by the network that the hub has in force.
type Explanation struct {
	Admitted  bool   `json:"admitted"` // a rule lets them pass
	Action    string `json:"action"`   // relay, echo (the hub answers pings alone) or drop
	Reason    string `json:"reason"`   // of a drop
	Revision  int64  `json:"revision"` // of the network, 0 while none is held
	From      End    `json:"from"`
	To        End    `json:"to"`
	Suspended bool   `json:"suspended"` // nothing passes at present, whatever the rule
	Sentence  string `json:"sentence"`  // the same for a person
}

// End is one end of a packet's way.
type End struct {
	Address   string `json:"address"`
	Node      string `json:"node"`   // that has the address, empty for none
	Prefix    string `json:"prefix"` // of the workload that the address is in, empty for none
	Domain    string `json:"domain"`
	Connected bool   `json:"connected"` // the node has a session with the hub
}
