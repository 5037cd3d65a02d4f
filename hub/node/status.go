package node

import (
	"net/netip"
	"time"

	"serve.zone/relay/hub/tunnel"
)

// Status is what a client shows. Nothing of it is secret.
type Status struct {
	State State     `json:"state"`
	Since time.Time `json:"since"`
	Next  time.Time `json:"next,omitzero"` // while waiting: when the next attempt is made
	Last  *Ending   `json:"last"`          // of the attempt or tunnel before, nil for none

	Hub       netip.AddrPort `json:"hub"`
	ExpiresAt time.Time      `json:"expiresAt,omitzero"`

	Tunnel *TunnelStatus `json:"tunnel"` // nil unless the tunnel is up

	Attempts uint64            `json:"attempts"`
	Tunnels  uint64            `json:"tunnels"`  // that came up
	Endings  map[Reason]uint64 `json:"endings"`  // by every reason
	Failures int               `json:"failures"` // attempts in a row that led to no tunnel that stood

	QueuedOut int     `json:"queuedOut"` // bytes that wait for QUIC
	QueuedIn  int     `json:"queuedIn"`  // bytes that wait for the device
	Traffic   Traffic `json:"traffic"`
}

// TunnelStatus is what there is to say of a tunnel that is up.
type TunnelStatus struct {
	ControlAddress netip.Prefix  `json:"controlAddress"`
	HubAddress     netip.Addr    `json:"hubAddress"`
	InnerMTU       int           `json:"innerMtu"`
	Keepalive      time.Duration `json:"keepalive"`   // what the hub asks for at least
	DatagramOut    int           `json:"datagramOut"` // bytes that one datagram to the hub holds
	DatagramIn     int           `json:"datagramIn"`  // what the hub says of the other direction, 0 if it has not
}

// Status returns what the client shows now. Any goroutine may call it.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status()
}

// status is Status. The caller holds the lock.
func (c *Client) status() Status {
	s := Status{
		State: c.machine.state, Since: c.machine.since, Next: c.machine.next,
		Hub: c.credential.Hub, ExpiresAt: c.credential.ExpiresAt,
		Attempts: c.attempts, Tunnels: c.tunnels, Failures: c.machine.failures,
		Endings:   make(map[Reason]uint64, len(paces)),
		QueuedOut: c.out.bytes(), QueuedIn: c.in.bytes(),
		Traffic: c.traffic.read(),
	}
	if c.machine.last != nil {
		last := *c.machine.last
		s.Last = &last
	}
	for reason := range paces {
		s.Endings[reason] = c.endings[reason]
	}
	if l := c.link; l != nil && s.State == StateUp {
		answer := l.session.Answer()
		s.Tunnel = &TunnelStatus{
			ControlAddress: answer.ControlAddress, HubAddress: answer.HubAddress,
			InnerMTU: int(answer.InnerMTU), Keepalive: answer.Keepalive,
			DatagramOut: int(l.limit.Load()), DatagramIn: int(l.hubSize.Load()),
		}
		stats := l.joiner.Stats()
		s.Traffic.PartsExpired += stats.Expired
		s.Traffic.PartsEvicted += stats.Evicted
	}
	return s
}

func settingsOf(a tunnel.Answer) Settings {
	return Settings{ControlAddress: a.ControlAddress, HubAddress: a.HubAddress, InnerMTU: int(a.InnerMTU)}
}
