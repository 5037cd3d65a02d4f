package duty

import (
	"context"
	"time"
)

// Duty is one of the relay's tasks, as the appliance sees it.
type Duty interface {
	// Name returns the duty's name in the grammar of field.IsName.
	Name() string
	// Checks returns what the duty's readiness depends on. It never blocks.
	Checks(now time.Time) []Check
	// Status returns the duty's part of the status document: a value of an
	// exported struct type of its own. It never blocks.
	Status() any
	// DropCustody is synchronous: nothing of the old custody leaves after it
	// returns (contract §6.2). why is the name of the cause.
	DropCustody(why string)
	// Drain ends what is in flight and returns when it is, or when ctx ends.
	Drain(ctx context.Context) error
}

// constant is a string that only a constant of the program can become: its
// name cannot be spelled in another package, so no string of run time
// converts to it. What takes a constant cannot be made to show a peer's text.
type constant string
