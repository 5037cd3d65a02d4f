package ingress

import (
	"errors"
	"log/slog"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// The events of this duty.
const (
	RouteTableApplied       duty.EventType = "route-table-applied"
	RouteTableRefused       duty.EventType = "route-table-refused"
	IngressRegistered       duty.EventType = "ingress-registered"
	IngressLeft             duty.EventType = "ingress-left"
	IngressAnswerRefused    duty.EventType = "ingress-registration-answer-refused"
	IngressRegistrationVoid duty.EventType = "ingress-registration-void"
	IngressesDropped        duty.EventType = "ingresses-dropped"
	TrafficPageRefused      duty.EventType = "ingress-traffic-page-refused"
)

// EventKinds is the table of the events, for the catalogue.
var EventKinds = []duty.EventKind{
	{Type: RouteTableApplied, Duty: Name, Level: slog.LevelInfo,
		Says: "A newer route table is held: its revision, how many routes of both kinds it has, and its size. The outcome tells whether Cloudly pushed it or was asked for it. Every registered ingress is told of the revision."},
	{Type: RouteTableRefused, Duty: Name, Level: slog.LevelError,
		Says: "Cloudly sent a route table that breaks a rule. The one held before is served on. Cloudly was told which members; look there."},
	{Type: IngressRegistered, Duty: Name, Level: slog.LevelInfo,
		Says: "Cloudly accepted the registration of a node's ingress. The outcome tells whether it is the node's first or came over a newer socket; one that keeps coming over newer sockets may run twice. One that is repeated on its socket is counted and is no event."},
	{Type: IngressLeft, Duty: Name, Level: slog.LevelInfo,
		Says: "A node has no registered ingress any more: its socket ended."},
	{Type: IngressAnswerRefused, Duty: Name, Level: slog.LevelWarn,
		Says: "The answer to an ingress's registration was neither an acceptance nor an error. Nothing was held. Look at Cloudly."},
	{Type: IngressRegistrationVoid, Duty: Name, Level: slog.LevelInfo,
		Says: "An ingress's registration was accepted too late: its socket had ended or taken another role, or the session to Cloudly had ended. The ingress registers again by itself."},
	{Type: IngressesDropped, Duty: Name, Level: slog.LevelWarn,
		Says: "Custody ended: the route table was zeroed, every ingress lost its role and its socket was cut; the count is of those whose socket had not ended yet. The reason is the name that Cloudly gave."},
	{Type: TrafficPageRefused, Duty: Name, Level: slog.LevelWarn,
		Says: "The ingress of a node answered with a page of traffic counters that breaks a rule, and Cloudly was told which. Look at that ingress."},
}

// facts are what is told of a table: nothing of its content.
func (h *held) facts() []field.Field {
	return []field.Field{
		field.Outcome(h.origin.String()), field.Revision(h.revision), field.Count(h.routes + h.ports), field.Bytes(h.bytes()),
	}
}

// codeOf says the close code that a socket ended with.
func codeOf(err error) field.Field {
	var end *typedsocket.EndError
	if !errors.As(err, &end) {
		return field.Field{}
	}
	return field.CloseCode(end.Code)
}
