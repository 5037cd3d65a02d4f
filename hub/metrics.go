package hub

import (
	"serve.zone/relay/duty"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// metrics is what this duty counts. Counts by member are in its status: a label for
// each would have no bound.
type metrics struct {
	set        *duty.Metrics
	handshakes *duty.By[handshakeEnd, duty.Counter]
	ended      *duty.By[sessionEnd, duty.Counter]
	networks   *duty.By2[origin, networkEnd, duty.Counter]
	drops      *duty.By[policy.Reason, duty.Counter]
	datagrams  *duty.By[tunnel.JoinResult, duty.Counter]

	packets, bytes, echoes, early *duty.Counter
	socketDropped, narrowed       *duty.Counter
}

// joinResults is how many results there are of taking a datagram.
var joinResults = tunnel.JoinEmpty + tunnel.JoinResult(len(tunnel.JoinRefusals()))

func (h *Hub) newMetrics() metrics {
	m := duty.NewMetrics(Name)
	m.Func("relay_hub_half_open_connections", "Connections whose handshake is under way.", func() float64 {
		h.gateMu.Lock()
		defer h.gateMu.Unlock()
		return float64(h.gate.total)
	})
	m.Func("relay_hub_live_sessions", "Members that are connected.", func() float64 { return float64(h.connected()) })
	m.Func("relay_hub_network_members", "Members of the network in force.", func() float64 {
		if n := h.table.Load().Network(); n != nil {
			return float64(len(n.Nodes))
		}
		return 0
	})
	m.Func("relay_hub_network_revision", "Revision of the network in force, 0 for none.", func() float64 {
		return float64(h.table.Load().Revision())
	})
	m.Func("relay_hub_queued_bytes", "Bytes that wait for members, queues inside QUIC apart.", func() float64 {
		return float64(h.queuedBytes())
	})
	return metrics{
		set:        m,
		handshakes: duty.CounterBy(m, "relay_hub_ended_handshakes_total", "Handshakes of nodes, by how they ended.", "outcome", handshakeEnds),
		ended:      duty.CounterBy(m, "relay_hub_ended_sessions_total", "Sessions of members that ended, by why.", "reason", sessionEnds),
		networks:   duty.CounterBy2(m, "relay_hub_received_networks_total", "Networks that Cloudly sent, by how and by what became of them.", "origin", origins, "outcome", networkEnds),
		drops:      policy.NewDropCounters(m),
		datagrams:  duty.CounterBy(m, "relay_hub_received_datagrams_total", "Datagrams of members, by what was in them; those behind whole, joined and held were refused.", "result", joinResults),
		packets:    m.Counter("relay_hub_relayed_packets_total", "Packets of members that were handed to the tunnel of another."),
		bytes:      m.Counter("relay_hub_relayed_bytes_total", "Their bytes."),
		echoes:     m.Counter("relay_hub_answered_echoes_total", "ICMP echo requests to the hub that were answered."),
		socketDropped: m.Counter("relay_hub_socket_dropped_packets_total",
			"UDP packets that the kernel dropped because the hub's socket had no room, looked at every second; always 0 where the system does not say."),
		narrowed: m.Counter("relay_hub_narrowed_paths_total",
			"Times QUIC began anew to measure the path to a member that had moved or whose path had become narrower."),
		early: m.Counter("relay_hub_early_datagrams_total", "Datagrams that came before their connection was confirmed, and were dropped."),
	}
}

// relayed counts a packet that left.
func (m *metrics) relayed(e *entry, length int) {
	if e.echo {
		m.echoes.Inc()
		return
	}
	m.packets.Inc()
	m.bytes.Add(uint64(length))
}

// Metrics returns what this duty counts.
func (h *Hub) Metrics() *duty.Metrics { return h.metrics.set }

// connected is how many members have a session.
func (h *Hub) connected() (n int) {
	for i := range h.routes {
		if h.routes[i].Load() != nil {
			n++
		}
	}
	return n
}

func (h *Hub) queuedBytes() (n int) {
	for i := range h.routes {
		if s := h.routes[i].Load(); s != nil {
			s.out.mu.Lock()
			n += s.out.queue.bytes + s.out.answers.bytes
			s.out.mu.Unlock()
		}
	}
	return n
}
