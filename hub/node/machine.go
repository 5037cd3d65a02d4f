package node

import "time"

// State is what a client is doing.
type State string

// The states.
const (
	StateIdle        State = "idle"        // Run has not begun
	StateDialling    State = "dialling"    // QUIC's handshake
	StateHandshaking State = "handshaking" // the tunnel's, on the stream
	StateUp          State = "up"          // packets cross
	StateWaiting     State = "waiting"     // for the next attempt
	StateStopped     State = "stopped"     // Run has ended
)

// An Ending is how an attempt or a tunnel ended.
type Ending struct {
	Reason     Reason        `json:"reason"`
	At         time.Time     `json:"at"`
	Up         time.Duration `json:"up"`         // how long the tunnel was up, zero if it never was
	RetryAfter time.Duration `json:"retryAfter"` // what the hub asked for, zero for nothing
}

// event is what a machine is told.
type event struct {
	kind   eventKind
	reason Reason        // of an end
	after  time.Duration // the hub's word about the next attempt
}

type eventKind uint8

const (
	begun     eventKind = iota // Run has been called
	connected                  // QUIC is there
	confirmed                  // the tunnel is up
	ended                      // the attempt failed, or the tunnel was lost
	due                        // the wait is over
	renewed                    // the credential has a new expiry
	stopped                    // Run has to end
)

// action is what the shell has to do about it.
type action uint8

const (
	carryOn action = iota
	dial           // make an attempt
	wait           // until machine.next
	finish
)

// machine decides when the hub is dialled. It has no clock, no socket, no goroutine.
type machine struct {
	random func() float64 // below 1

	state    State
	since    time.Time
	failures int       // attempts in a row that led to no tunnel which stood
	contests int       // times that the key was another's, since a tunnel that stood beyond doubt
	next     time.Time // while waiting: when it is over
	last     *Ending   // nil before the first one
}

// step takes an event. One that has no place in the state changes nothing.
func (m *machine) step(e event, now time.Time) action {
	switch {
	case m.state == StateStopped:
		return finish
	case e.kind == stopped:
		m.enter(StateStopped, now)
		return finish
	case e.kind == begun && m.state == StateIdle, e.kind == due && m.state == StateWaiting:
		m.enter(StateDialling, now)
		return dial
	case e.kind == renewed && m.state == StateWaiting && m.last.Reason == HubNotAdmitted:
		// What the hub did not admit is now another thing.
		m.failures = 0
		m.enter(StateDialling, now)
		return dial
	case e.kind == connected && m.state == StateDialling:
		m.enter(StateHandshaking, now)
	case e.kind == confirmed && m.state == StateHandshaking:
		m.enter(StateUp, now)
	case e.kind == ended && m.attempting():
		return m.end(e, now)
	}
	return carryOn
}

func (m *machine) attempting() bool {
	return m.state == StateDialling || m.state == StateHandshaking || m.state == StateUp
}

func (m *machine) end(e event, now time.Time) action {
	m.last = &Ending{Reason: e.reason, At: now, RetryAfter: e.after}
	if m.state == StateUp {
		m.last.Up = now.Sub(m.since)
		if m.last.Up >= stood {
			m.failures = 0
		}
		if m.last.Up >= stoodAlone {
			m.contests = 0
		}
	}
	m.failures++
	in := m.failures
	if e.reason == HubSuperseded || e.reason == HubDuplicateKey {
		// Two machines with one key would replace each other for ever at the first pace,
		// with tunnels that stand well between.
		m.contests++
		in = m.contests
	}
	m.enter(StateWaiting, now)
	m.next = now.Add(e.reason.wait(in, e.after, m.random()))
	return wait
}

func (m *machine) enter(s State, now time.Time) {
	m.state, m.since, m.next = s, now, time.Time{}
}
