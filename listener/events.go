package listener

import (
	"log/slog"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// The types of the listener's events.
const (
	EventBound           duty.EventType = "listener-bound"
	EventFailed          duty.EventType = "listener-failed"
	EventSocketClosed    duty.EventType = "listener-socket-closed"
	EventSocketsFull     duty.EventType = "listener-sockets-full"
	EventConnectionsFull duty.EventType = "listener-connections-full"
	EventDrained         duty.EventType = "listener-drained"
)

// EventKinds is the table of the listener's events.
var EventKinds = []duty.EventKind{
	{Type: EventBound, Duty: Name, Level: slog.LevelInfo, Says: "The node listener was bound, to this address."},
	{Type: EventFailed, Duty: Name, Level: slog.LevelError, Says: "The node listener stopped accepting by itself. Sockets that stand go on; restart the relay."},
	{Type: EventSocketClosed, Duty: Name, Level: slog.LevelInfo, Says: "A socket that had a role ended, for this reason, after this time."},
	{Type: EventSocketsFull, Duty: Name, Level: slog.LevelWarn, Says: "A WebSocket handshake was refused because as many sockets stand as there may be. Said once a minute."},
	{Type: EventConnectionsFull, Duty: Name, Level: slog.LevelWarn, Says: "A connection was closed because as many are open as there may be. Said once a minute."},
	{Type: EventDrained, Duty: Name, Level: slog.LevelInfo, Says: "The node listener has drained: so many sockets were closed at rest, and what was in flight finished or was cut short."},
}

// sayFull publishes that a bound was met, once in a while.
func (l *Listener) sayFull(event duty.EventType, limit field.Field) {
	now := time.Now()
	l.mu.Lock()
	last, said := l.full[event]
	quiet := said && now.Sub(last) < fullEvery
	if !quiet {
		l.full[event] = now
	}
	l.mu.Unlock()
	if !quiet {
		l.publish(event, limit)
	}
}

func (l *Listener) publish(t duty.EventType, fields ...field.Field) {
	if l.cfg.Events != nil {
		l.cfg.Events.Publish(t, fields...)
	}
}
