package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// NotReadyError is a relay that says it is not ready.
type NotReadyError struct{ Readiness Readiness }

// Error names the checks that are against.
func (e *NotReadyError) Error() string {
	var names []string
	for _, f := range e.Readiness.Against() {
		names = append(names, f.Duty+" "+f.Check+" ("+f.Reason+")")
	}
	if len(names) == 0 {
		return "the relay is not ready"
	}
	return "the relay is not ready: " + strings.Join(names, ", ")
}

// NoAnswerError is an endpoint that could not be reached, or that did not answer.
type NoAnswerError struct{ Cause error }

// Error is the cause's.
func (e *NoAnswerError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *NoAnswerError) Unwrap() error { return e.Cause }

// UnavailableError is a relay that cannot answer for the moment: too much is
// asked of it, or it is leaving.
type UnavailableError struct {
	Path       string
	RetryAfter time.Duration // 0 if it gave no hint
}

// Error names the path.
func (e *UnavailableError) Error() string {
	return "ask the relay for " + e.Path + ": it cannot answer at present (503)"
}

// ErrNoHub is a relay that has no hub, so that there is no network to ask about.
var ErrNoHub = errors.New("the relay has no hub: it was started without --hub-listen")

// noHub is the name that the endpoint has for it.
const noHub = "no-hub"

// AnswerError is an answer of another status than expected.
type AnswerError struct {
	Path   string
	Status int
}

// Error names path and status.
func (e *AnswerError) Error() string {
	switch e.Status {
	case http.StatusBadRequest: // as a server of TLS answers too, such as the node listener
		return "ask the relay for " + e.Path + ": what answers there is no operator endpoint (400)"
	case http.StatusMisdirectedRequest:
		return "ask the relay for " + e.Path + ": it is to be asked by an address or as localhost, not by another name (421)"
	case http.StatusForbidden:
		return "ask the relay for " + e.Path + ": it is answered on the relay's own machine alone, by a loopback address (403)"
	}
	return fmt.Sprintf("ask the relay for %s: status %d", e.Path, e.Status)
}
