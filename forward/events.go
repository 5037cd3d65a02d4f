package forward

import (
	"log/slog"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// The events of this duty.
const (
	NodeBound             duty.EventType = "node-bound"
	NodeUnbound           duty.EventType = "node-unbound"
	NodeAnswerRefused     duty.EventType = "node-registration-answer-refused"
	NodesUnconfirmed      duty.EventType = "nodes-unconfirmed"
	NodesDropped          duty.EventType = "nodes-dropped"
	StaleCredentialHeard  duty.EventType = "node-answer-credential-stale"
	NodeSocketsDrained    duty.EventType = "node-sockets-drained"
	NodeRegistrationVoid  duty.EventType = "node-registration-void"
	NodeOverloaded        duty.EventType = "node-overloaded"
	NodeRecallInterrupted duty.EventType = "nodes-recall-interrupted"
)

// EventKinds is the table of the events, for the catalogue.
var EventKinds = []duty.EventKind{
	{Type: NodeBound, Duty: Name, Level: slog.LevelInfo,
		Says: "Cloudly accepted a node's registration. The outcome tells whether it is the node's first, confirms what was held before a return of Cloudly, is a rotation, or came over a newer socket; a node that keeps coming over newer sockets may run twice. A replay that changes nothing is counted and is no event."},
	{Type: NodeUnbound, Duty: Name, Level: slog.LevelInfo,
		Says: "A node has no session here any more; the reason tells why."},
	{Type: NodeAnswerRefused, Duty: Name, Level: slog.LevelWarn,
		Says: "The answer to a node's registration bore no session that may be held for that node. Its socket was closed. Look at Cloudly."},
	{Type: NodeRegistrationVoid, Duty: Name, Level: slog.LevelInfo,
		Says: "A node's registration was accepted too late: its socket had ended or taken another role, or the session to Cloudly had ended. The node registers again by itself."},
	{Type: NodesUnconfirmed, Duty: Name, Level: slog.LevelInfo,
		Says: "A new session to Cloudly stands. Nodes that were bound before have to register again; their sockets are closed one by one."},
	{Type: NodeRecallInterrupted, Duty: Name, Level: slog.LevelInfo,
		Says: "The session to Cloudly was lost before all nodes had registered again. The others stay bound as they were."},
	{Type: NodesDropped, Duty: Name, Level: slog.LevelWarn,
		Says: "Custody ended: every node session was dropped and every node socket cut. The reason is the name that Cloudly gave."},
	{Type: StaleCredentialHeard, Duty: Name, Level: slog.LevelWarn,
		Says: "An answer to a node said that the relay's own credential is no longer current."},
	{Type: NodeOverloaded, Duty: Name, Level: slog.LevelWarn,
		Says: "A request was refused because too much was in flight, the first time in a minute. Look who fills the socket in the status."},
	{Type: NodeSocketsDrained, Duty: Name, Level: slog.LevelInfo,
		Says: "The relay stops: all node sockets were closed."},
}

// publish queues an event. The caller holds mu.
func (f *Forward) publish(t duty.EventType, fields ...field.Field) {
	if f.cfg.Events != nil {
		f.later(func() { f.cfg.Events.Publish(t, fields...) })
	}
}
