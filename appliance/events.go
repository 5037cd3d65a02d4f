package appliance

import (
	"log/slog"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/duty"
	"serve.zone/relay/escrow"
	"serve.zone/relay/forward"
	"serve.zone/relay/hub"
	"serve.zone/relay/ingress"
	"serve.zone/relay/listener"
	"serve.zone/relay/operator"
	origincert "serve.zone/relay/tls"
)

// relayName is the duty under which the relay speaks of itself as a whole.
const relayName = "relay"

// The events of the relay as a whole.
const (
	EventStarted  duty.EventType = "relay-started"
	EventReloaded duty.EventType = "relay-reloaded"
	EventDraining duty.EventType = "relay-draining"
	EventDrained  duty.EventType = "relay-drained"
	EventFailed   duty.EventType = "relay-failed"

	EventAuthoritiesRefused duty.EventType = "relay-authorities-refused"
)

// EventKinds are the events that the appliance publishes itself.
var EventKinds = []duty.EventKind{
	{Type: EventStarted, Duty: relayName, Level: slog.LevelInfo, Says: "The relay has bound its listeners and begins to dial Cloudly."},
	{Type: EventReloaded, Duty: relayName, Level: slog.LevelInfo, Says: "The relay was told to read its files again."},
	{Type: EventDraining, Duty: relayName, Level: slog.LevelInfo, Says: "The relay was told to stop. It takes nothing new and ends what is in flight."},
	{Type: EventDrained, Duty: relayName, Level: slog.LevelInfo, Says: "The relay has drained. The outcome tells whether something was cut short."},
	{Type: EventFailed, Duty: relayName, Level: slog.LevelError, Says: "A part of the relay failed in a way that it cannot go on from: a mistake in the relay. The process ends; start it again."},
	{Type: EventAuthoritiesRefused, Duty: relayName, Level: slog.LevelError, Says: "The file of Cloudly's authorities could not be read on a reload. Those that were loaded before are trusted still."},
	{Type: EventOriginMismatch, Duty: originName, Level: slog.LevelError, Says: "Nodes are told an origin that this relay does not serve: another host than the certificate names, or another port than is bound. Put the certificate, the port or Cloudly's relay block right."},
	{Type: EventOriginMatches, Duty: originName, Level: slog.LevelInfo, Says: "The origin and what is served agree again."},
}

// catalogue is every kind of event that a relay publishes, and more of tests.
func catalogue(more []duty.EventKind) (*duty.Catalogue, error) {
	return duty.NewCatalogue(EventKinds, cloudly.EventKinds, forward.EventKinds, listener.EventKinds,
		origincert.EventKinds, operator.EventKinds, ingress.EventKinds, escrow.EventKinds, hub.EventKinds, more)
}
