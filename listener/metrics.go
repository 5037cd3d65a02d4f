package listener

import (
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// Name is the name of this duty.
const Name = "listener"

// metrics are what the listener counts.
type metrics struct {
	set                *duty.Metrics
	connections        *duty.Gauge
	refusedConnections *duty.Counter
	uncertified        *duty.Counter
	requests           *duty.By[answer, duty.Counter]
	refusedUpgrades    *duty.By[refusal, duty.Counter]
	accepted           *duty.Counter
	sockets            *duty.By[role, duty.Gauge]
	closed             *duty.By[cause, duty.Counter]
	calls              *duty.By2[role, outcome, duty.Counter]
}

func (l *Listener) newMetrics() *metrics {
	m := duty.NewMetrics(Name)
	duty.FuncBy(m, "relay_listener_carrier_events_total", "What the carrier met on sockets of nodes and ingresses, those that have ended among them.",
		"event", typedsocket.Counts, func(c typedsocket.Count) float64 { return float64(l.count(c)) })
	return &metrics{
		set:                m,
		connections:        m.Gauge("relay_listener_open_connections", "TCP connections that are open, sockets among them."),
		refusedConnections: m.Counter("relay_listener_refused_connections_total", "TCP connections closed because as many were open as there may be."),
		uncertified:        m.Counter("relay_listener_uncertified_handshakes_total", "TLS handshakes that failed because there was no certificate."),
		requests:           duty.CounterBy(m, "relay_listener_http_requests_total", "HTTP requests, by what they were answered with.", "answer", answers),
		refusedUpgrades:    duty.CounterBy(m, "relay_listener_refused_upgrades_total", "WebSocket handshakes that were not taken, by reason.", "reason", refusals),
		accepted:           m.Counter("relay_listener_accepted_sockets_total", "Sockets that were accepted."),
		sockets:            duty.GaugeBy(m, "relay_listener_open_sockets", "Sockets that stand, by role.", "role", roles),
		closed:             duty.CounterBy(m, "relay_listener_closed_sockets_total", "Sockets that ended, by cause.", "cause", causes),
		calls:              duty.CounterBy2(m, "relay_listener_typed_requests_total", "Typed requests, by the role of their socket and by what became of them.", "role", roles, "outcome", outcomes),
	}
}

// count adds one of the carrier's counts up, over all sockets so far.
func (l *Listener) count(c typedsocket.Count) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.gone[c]
	for conn := range l.conns {
		if conn.sock != nil {
			n += conn.sock.Stats().Of(c)
		}
	}
	return n
}

// Metrics returns what the listener counts.
func (l *Listener) Metrics() *duty.Metrics { return l.metrics.set }
