package duty

import (
	"time"

	"serve.zone/relay/duty/field"
)

// Check is one condition that a duty watches.
type Check struct {
	// Name says what is checked, in the grammar of field.IsName, such as
	// "cloudly-session". It is API: operators' probes select by it.
	Name string
	// Advice marks a check that is shown but never makes the relay not ready.
	// The zero value is the strict one.
	Advice bool
	// State is where the condition stands.
	State State
	// Reason names the cause while State is not OK, in the same grammar.
	Reason string
	// Hint is one sentence that says what the operator can do. Being a
	// constant of the program it cannot quote a peer; figures go to Facts.
	Hint constant
	// Facts are the figures that the hint speaks of.
	Facts field.List
	// Since is when State or Reason last changed; zero if nobody knows.
	Since time.Time
}

// State is where a condition stands.
type State uint8

// The states of a check. The zero value is Pending, so that a check nobody
// has judged is not taken for a good one.
const (
	Pending State = iota // not known yet, or still under way
	OK
	Failing
)

var states = [...]string{Pending: "pending", OK: "ok", Failing: "failing"}

// String returns the state's name.
func (s State) String() string {
	if int(s) >= len(states) {
		return field.Withheld
	}
	return states[s]
}

// MarshalText returns the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// After returns c as the successor of an earlier judgement of the same
// condition: while state and reason stay as they were, so does Since.
func (c Check) After(earlier Check) Check {
	if earlier.Name == c.Name && earlier.State == c.State && earlier.Reason == c.Reason && !earlier.Since.IsZero() {
		c.Since = earlier.Since
	}
	return c
}
