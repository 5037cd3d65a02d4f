package ingress

import (
	"slices"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// Status is this duty's part of the status document. Of a table it shows how much
// there is and nothing of what (contract §17).
type Status struct {
	Attached  bool      `json:"attached"` // a session to Cloudly stands
	Draining  bool      `json:"draining"`
	Table     *Table    `json:"table"`     // null while none is held
	Ingresses []Speaker `json:"ingresses"` // ordered by node, never nil
	InFlight  InFlight  `json:"inFlight"`
	// LastRefusal is the last registration that Cloudly refused, null for none.
	LastRefusal *Refusal `json:"lastRefusal"`
}

// Table is the route table that is held.
type Table struct {
	Revision   int64     `json:"revision"`
	IssuedAt   time.Time `json:"issuedAt"`  // by Cloudly's clock
	AppliedAt  time.Time `json:"appliedAt"` // by the relay's
	Origin     string    `json:"origin"`    // pushed or pulled
	Routes     int       `json:"routes"`
	PortRoutes int       `json:"portRoutes"`
	Bytes      int       `json:"bytes"` // encoded
}

// Speaker is a registered ingress. Revisions are 0 for none.
type Speaker struct {
	Node          string    `json:"node"`
	Since         time.Time `json:"since"`         // of the last acceptance
	Registrations uint64    `json:"registrations"` // accepted on this socket
	Hinted        int64     `json:"hinted"`        // the last revision it was told of
	Acknowledged  int64     `json:"acknowledged"`  // the last whose hint it answered
	AckedAt       time.Time `json:"acknowledgedAt,omitzero"`
	Pulls         uint64    `json:"pulls"`  // of the table
	Pulled        int64     `json:"pulled"` // the revision it was answered last
	PulledAt      time.Time `json:"pulledAt,omitzero"`
}

// InFlight is what waits.
type InFlight struct {
	Registrations int `json:"registrations"` // for Cloudly
	Traffic       int `json:"traffic"`       // questions for counters, for an ingress
	Tables        int `json:"tables"`        // pushed ones, to be judged
}

// Refusal is a registration that Cloudly refused.
type Refusal struct {
	Node         string               `json:"node"`
	Reason       contract.RefusalName `json:"reason"` // a name of the contract, or unnamed
	RetryAfterMs int64                `json:"retryAfterMs,omitempty"`
	At           time.Time            `json:"at"`
}

// Status returns a Status.
func (i *Ingress) Status() any {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := Status{
		Attached: i.roles.attached, Draining: i.draining, Table: i.table.shown(), Ingresses: []Speaker{},
		InFlight:    InFlight{Registrations: i.registering, Traffic: i.asking, Tables: len(i.pushes)},
		LastRefusal: i.refused, // never changed, only replaced
	}
	if i.judging {
		s.InFlight.Tables++
	}
	for _, node := range i.roles.nodes() {
		s.Ingresses = append(s.Ingresses, i.roles.holders[node].shown(node))
	}
	return s
}

func (h *held) shown() *Table {
	if h == nil {
		return nil
	}
	return &Table{
		Revision: h.revision, IssuedAt: h.issuedAt, AppliedAt: h.since.UTC(), Origin: h.origin.String(),
		Routes: h.routes, PortRoutes: h.ports, Bytes: h.bytes(),
	}
}

func (p *peer) shown(node string) Speaker {
	return Speaker{
		Node: node, Since: p.since.UTC(), Registrations: p.accepted,
		Hinted: p.told, Acknowledged: p.knows, AckedAt: utc(p.knowsAt),
		Pulls: p.pulls, Pulled: p.pulled, PulledAt: utc(p.pulledAt),
	}
}

// utc leaves the zero time what it is.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// The checks of this duty, all of them advice: a cluster need not have an ingress.
const (
	checkTable = iota
	checkIngress
	numChecks
)

// Checks returns whether a table is held and an ingress is registered.
func (i *Ingress) Checks(now time.Time) []duty.Check {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.judge(now)
	return slices.Clone(i.judged[:])
}

// judge judges the checks anew. It is called at whatever may change what they say too, so that
// the age of a check is that of the change and not of who asks first. The caller holds
// mu.
func (i *Ingress) judge(now time.Time) {
	checks := [numChecks]duty.Check{
		checkTable:   {Name: "route-table", Advice: true, State: duty.OK, Since: now},
		checkIngress: {Name: "ingress-registered", Advice: true, State: duty.OK, Since: now},
	}
	if i.table == nil {
		c := &checks[checkTable]
		c.State, c.Reason = duty.Pending, "no-table"
		c.Hint = "Cloudly has computed no route table yet, or there was no session to ask for it; ingresses are answered that there is none."
	} else {
		checks[checkTable].Facts = field.List{field.Revision(i.table.revision), field.Count(i.table.routes + i.table.ports)}
	}
	if n := len(i.roles.holders); n == 0 {
		c := &checks[checkIngress]
		c.State, c.Reason = duty.Pending, "no-ingress"
		c.Hint = "No ingress is registered. If the cluster should have one, see the last refusal in the status, and whether its service runs."
		if i.refused != nil {
			c.Facts = field.List{field.Node(i.refused.Node), field.Refusal(i.refused.Reason)}
		}
	} else {
		checks[checkIngress].Facts = field.List{field.Count(n)}
	}
	for n := range checks {
		i.judged[n] = checks[n].After(i.judged[n])
	}
}
