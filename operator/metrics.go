package operator

import "serve.zone/relay/duty"

// metrics are what the operator endpoint counts.
type metrics struct {
	set                *duty.Metrics
	requests           *duty.By2[route, outcome, duty.Counter]
	connections        *duty.Gauge
	refusedConnections *duty.Counter
	questions          *duty.By2[question, fault, duty.Counter]
	lostFamilies       *duty.Counter
}

func newMetrics() *metrics {
	m := duty.NewMetrics(Name)
	return &metrics{
		set:                m,
		requests:           duty.CounterBy2(m, "relay_operator_http_requests_total", "HTTP requests, by what was asked for and by what became of them.", "route", routes, "outcome", outcomes),
		connections:        m.Gauge("relay_operator_open_connections", "TCP connections that are open."),
		refusedConnections: m.Counter("relay_operator_refused_connections_total", "TCP connections closed because as many were open as there may be."),
		questions:          duty.CounterBy2(m, "relay_operator_asked_questions_total", "Questions to the duties, by question and by how they were answered.", "question", questions, "answer", faults),
		lostFamilies:       m.Counter("relay_operator_lost_metrics_total", "Metrics that were not shown because their name was taken: a mistake in the relay."),
	}
}

// answered sums up the requests.
func (m *metrics) answered() uint64 {
	var n uint64
	for r := range routes {
		for o := range outcomes {
			n += m.requests.Of(r, o).Value()
		}
	}
	return n
}

// Metrics returns what the operator endpoint counts. They are shown without
// being among Config.Metrics.
func (o *Operator) Metrics() *duty.Metrics { return o.metrics.set }
