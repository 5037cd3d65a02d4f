package cloudly

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
)

// Status is the session's part of the status document. It holds nothing secret.
type Status struct {
	// State is waiting, dialing, exchanging, authenticating, registering, refused,
	// registered, renewing or stopped.
	State string    `json:"state"`
	Since time.Time `json:"since"` // when State was entered
	// Registered tells whether Cloudly holds a registration on a live socket, and
	// RegisteredChanged when that last changed.
	Registered        bool      `json:"registered"`
	RegisteredChanged time.Time `json:"registeredChanged"`
	// Attempts counts all since the start, Failures those in a row that came to no
	// session which stood.
	Attempts      uint64    `json:"attempts"`
	Failures      int       `json:"failures"`
	NextAttemptAt time.Time `json:"nextAttemptAt,omitzero"` // or the next registration; absent when none is awaited
	LastTrouble   string    `json:"lastTrouble,omitempty"`  // why there is no session; absent while one stands

	NextSequence          int64      `json:"nextSequence"`
	AcceptedRegistrations uint64     `json:"acceptedRegistrations"`
	Origin                string     `json:"origin,omitempty"` // as the last accepted registration answered
	Credential            *Reference `json:"credential,omitempty"`
	AcceptedRegistration  *Reference `json:"acceptedRegistration,omitempty"`

	LastRefusal *Refusal `json:"lastRefusal,omitempty"`
	Offer       Offer    `json:"offer"`
	PeerOffer   *Offer   `json:"peerOffer,omitempty"` // Cloudly's, as last heard

	CredentialFault string `json:"credentialFault,omitempty"` // why the file cannot be used
}

// Reference names a version of a record. All of it is public.
type Reference struct {
	ID         string `json:"id"`
	Generation int64  `json:"generation"`
	Digest     string `json:"digest"`
}

// Refusal is what Cloudly, or the relay about Cloudly's offer, refused last.
type Refusal struct {
	Name     string    `json:"name"`             // a custody refusal, protocol-incompatible, or unnamed
	Reason   string    `json:"reason,omitempty"` // of a protocol refusal
	At       time.Time `json:"at"`
	Standing bool      `json:"standing"` // no registration was accepted since, and it has to be lifted
}

// Offer is a side's protocol offer.
type Offer struct {
	InterfacesVersion  string `json:"interfacesVersion"`
	MinimumPeerVersion string `json:"minimumPeerVersion"`
}

// Names of refusals that are none of the custody refusals.
const (
	refusalProtocol = "protocol-incompatible"
	refusalUnnamed  = "unnamed"
)

// shown is what Status and Checks tell. It is copied whole, so nothing that it
// points to is ever changed.
type shown struct {
	state
	since        time.Time // the phase
	turned       time.Time // registered or not
	attempts     uint64
	trouble      trouble
	troubled     bool // trouble holds
	origin       string
	credential   *Reference
	registration *Reference
	refusal      *Refusal
	peer         *Offer
	fault        string // of the credential
	looked       bool   // at the credential
	checks       [numChecks]duty.Check
}

func newShown(now time.Time) shown {
	v := shown{since: now, turned: now}
	v.judge(now)
	return v
}

func (v *shown) dropCustody() { v.origin, v.credential, v.registration = "", nil, nil }

// peek returns what is shown now.
func (s *Session) peek() shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// show takes what happened into what is shown, and counts it.
func (s *Session) show(before state, m *mail) {
	now := s.cfg.Wall()
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &s.shown
	v.state = s.state
	if v.phase != before.phase {
		v.since = now
	}
	if v.phase.stands() != before.phase.stands() {
		v.turned = now
	}
	if v.epoch != before.epoch {
		v.attempts++
		s.metrics.attempts.Inc()
	}
	if m.kind == evCredential {
		v.looked, v.fault = true, ""
		if m.unusual != nil {
			v.fault = m.unusual.Name
		}
	}
	if s.state != before {
		s.showOutcome(v, m, now)
	}
	v.judge(now)
}

// showOutcome takes an event that changed something into what is shown.
func (s *Session) showOutcome(v *shown, m *mail, now time.Time) {
	failed := m.ended != ""
	switch m.kind {
	case evAuthenticated:
		v.peer = offerOf(m.offer)
	case evAccepted:
		s.showAcceptance(v, m)
	case evIncompatible:
		v.refusal = &Refusal{Name: refusalProtocol, Reason: string(m.refusal.Reason), At: now, Standing: true}
		v.peer = offerOf(peerOf(m.refusal, s.cfg.Offer))
		failed = true
	case evRefused:
		if m.trouble != factsInvalid && (v.refusal == nil || !v.refusal.Standing) {
			v.refusal = &Refusal{Name: refusalUnnamed, At: now}
		}
		failed = true
	case evUnusable, evUnanswered, evLost:
		failed = true
	}
	if m.ended != "" {
		v.refusal = &Refusal{Name: string(m.ended), At: now, Standing: true}
	}
	if failed {
		s.metrics.failures.Of(m.trouble).Inc()
		v.trouble, v.troubled = m.trouble, !v.phase.stands()
	}
}

func (s *Session) showAcceptance(v *shown, m *mail) {
	s.metrics.accepted.Inc()
	v.origin, v.peer = m.answer.Origin, offerOf(m.answer.Protocol)
	v.credential, v.registration = referenceOf(m.answer.Credential), referenceOf(m.answer.AcceptedRegistration)
	v.troubled = false
	if v.refusal != nil {
		lifted := *v.refusal
		lifted.Standing = false
		v.refusal = &lifted
	}
}

// peerOf returns the offer of the other side in a refusal that either side may
// have made.
func peerOf(refusal contract.ProtocolRefusal, own contract.Offer) contract.Offer {
	if refusal.Refusing == own {
		return refusal.Refused
	}
	return refusal.Refusing
}

func offerOf(o contract.Offer) *Offer {
	return &Offer{InterfacesVersion: o.InterfacesVersion, MinimumPeerVersion: o.MinimumPeerVersion}
}

func referenceOf(r contract.Reference) *Reference {
	return &Reference{ID: r.ID, Generation: r.Generation, Digest: r.Digest}
}

// untilNext returns how long the session waits still, 0 when it waits for nothing.
func (s *Session) untilNext(v shown) time.Duration {
	if v.wakeAt == 0 {
		return 0
	}
	return max(0, v.wakeAt-s.now())
}

// Status returns the session's part of the status document, a Status.
func (s *Session) Status() any {
	v := s.peek()
	status := Status{
		State: v.phase.String(), Since: v.since,
		Registered: v.phase.stands(), RegisteredChanged: v.turned,
		Attempts: v.attempts, Failures: v.failures,
		NextSequence: v.next, AcceptedRegistrations: v.accepted,
		Origin: v.origin, Credential: v.credential, AcceptedRegistration: v.registration,
		LastRefusal: v.refusal, Offer: *offerOf(s.cfg.Offer), PeerOffer: v.peer,
		CredentialFault: v.fault,
	}
	if v.wakeAt != 0 {
		status.NextAttemptAt = s.cfg.Wall().Add(s.untilNext(v))
	}
	if v.troubled {
		status.LastTrouble = v.trouble.String()
	}
	return status
}
