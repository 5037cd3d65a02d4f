package operator

import (
	"context"
	"net"
	"net/http"

	"serve.zone/relay/duty/endpoint"
)

// capped bounds the connections of a listener. Those of the reserve are answered
// when they ask for a probe, once.
func (o *Operator) capped(l net.Listener) net.Listener {
	return &endpoint.Cap{Listener: l, Limit: maxConnections, Reserve: reserve,
		Open: o.metrics.connections, Refused: o.metrics.refusedConnections}
}

// surplusKey marks the context of requests on surplus connections.
type surplusKey struct{}

// markSurplus is http.Server.ConnContext.
func markSurplus(ctx context.Context, c net.Conn) context.Context {
	if conn, ok := c.(*endpoint.Conn); ok && conn.Surplus {
		return context.WithValue(ctx, surplusKey{}, true)
	}
	return ctx
}

func isSurplus(r *http.Request) bool { return r.Context().Value(surplusKey{}) != nil }
