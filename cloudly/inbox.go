package cloudly

import (
	"sync"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// mail is an event with what only the shell needs of it.
type mail struct {
	event
	step    bool // what came of a step
	trouble trouble
	ended   contract.RefusalName           // what the step it led to ended custody by; empty when it did not
	err     error                          // why, for the log
	refusal contract.ProtocolRefusal       // evIncompatible
	sock    *typedsocket.Socket            // evOpened
	bearer  contract.Secret                // evOpened: to be exchanged
	answer  registrationAnswer             // evAccepted
	offer   contract.Offer                 // evAuthenticated: Cloudly's
	unusual *CredentialError               // evCredential: why the file cannot be used; nil when it can
	push    *typedsocket.Request           // a configuration push that is not read yet
	pulled  *pulledConfiguration           // a configuration that was pulled
	config  *contract.ClusterConfiguration // evStated, evAbsent, evInvalid
}

// registrationAnswer is an accepted registration.
type registrationAnswer struct {
	sequence int64
	contract.RelayRegistrationAnswer
}

// inbox holds what the loop has not looked at yet, in order. It is bounded without
// a count: a step has one outcome, a socket one end, and of what others may say at
// will (facts, kicks, each custody name, the credential) one waits at most;
// configuration pushes have a bound of their own.
//
// Nobody waits to post, and a custody name is never refused.
type inbox struct {
	mu     sync.Mutex
	queue  []mail        // guarded by mu
	pushes int           // guarded by mu
	closed bool          // guarded by mu
	wake   chan struct{} // has room for one
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// post adds m. False means that it was not taken: the inbox is closed, or m is a
// push too many. Who posted a request or a socket then ends it.
func (b *inbox) post(m mail) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || m.push != nil && b.pushes >= waitingPushes {
		return false
	}
	if !b.merge(m) {
		b.queue = append(b.queue, m)
	}
	if m.push != nil {
		b.pushes++
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// merge lets an event that is waiting already stand for m as well.
func (b *inbox) merge(m mail) bool {
	if m.push != nil || m.pulled != nil {
		return false
	}
	switch m.kind {
	case evFacts, evKick, evHeard, evCredential, evStop:
	default:
		return false
	}
	for i := range b.queue {
		w := &b.queue[i]
		if w.push != nil || w.pulled != nil || w.kind != m.kind || w.epoch != m.epoch || w.name != m.name {
			continue
		}
		if m.kind == evCredential {
			// The latest look is what counts.
			*w = m
		}
		return true
	}
	return false
}

// take returns the next event.
func (b *inbox) take() (mail, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return mail{}, false
	}
	m := b.queue[0]
	b.queue[0] = mail{}
	b.queue = b.queue[1:]
	if len(b.queue) == 0 {
		b.queue = nil
	}
	if m.push != nil {
		b.pushes--
	}
	return m, true
}

// close refuses what comes later and returns what was not looked at.
func (b *inbox) close() []mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	left := b.queue
	b.queue, b.pushes = nil, 0
	return left
}
