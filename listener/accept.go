package listener

import (
	"net"

	"serve.zone/relay/duty/endpoint"
	"serve.zone/relay/duty/field"
)

// capped bounds the connections of a listener that are open at once.
func (l *Listener) capped(inner net.Listener) net.Listener {
	return &endpoint.Cap{Listener: inner, Limit: maxConnections, Open: l.metrics.connections, Refused: l.metrics.refusedConnections,
		Full: func() { l.sayFull(EventConnectionsFull, field.Limit(maxConnections)) }}
}
