package operator

import (
	"log/slog"

	"serve.zone/relay/duty"
)

// The types of the operator endpoint's events.
const (
	EventBound  duty.EventType = "operator-bound"
	EventFailed duty.EventType = "operator-failed"
)

// EventKinds is the table of the operator endpoint's events.
var EventKinds = []duty.EventKind{
	{Type: EventBound, Duty: Name, Level: slog.LevelInfo, Says: "The operator endpoint was bound, to this address."},
	{Type: EventFailed, Duty: Name, Level: slog.LevelError, Says: "The operator endpoint stopped accepting by itself. The relay goes on; restart it to be able to ask it again."},
}
