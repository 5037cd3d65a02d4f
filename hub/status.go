package hub

import (
	"time"

	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// Status is this duty's part of the status document. It shows no key of a member and
// nothing of what packets carry (contract §10.7, §18).
type Status struct {
	Bound     string `json:"bound,omitempty"` // address and port; empty before it is
	PublicKey string `json:"publicKey"`       // the hub's own, which nodes are told anyway
	Ephemeral bool   `json:"keyEphemeral"`    // the key lasts as long as this process
	Attached  bool   `json:"attached"`        // a session to Cloudly stands
	Suspended bool   `json:"suspended"`       // custody may be about to end; nothing is carried
	Draining  bool   `json:"draining"`
	HalfOpen  int    `json:"halfOpenConnections"` // whose handshake is under way
	InnerMTU  int    `json:"innerMtu"`            // the largest packet of a member, in bytes

	Socket  *Socket      `json:"socket"`  // null before the hub is bound, and where the system does not say
	Network *Network     `json:"network"` // null while none is held
	Members []Membership `json:"members"` // of the network in force, ordered by node; never nil
}

// Socket is what the kernel says of the hub's UDP socket. What it adds to buffers for
// itself counts: on Linux a buffer is twice what was asked for.
type Socket struct {
	ReceiveBuffer  int    `json:"receiveBufferBytes"`
	SendBuffer     int    `json:"sendBufferBytes"`
	WantedBuffer   int    `json:"wantedBufferBytes"` // of each; a smaller one loses packets in a burst
	DroppedPackets uint64 `json:"droppedPackets"`    // that came and had no room

	dropping bool // some of them within the last minute
}

// Network is the network in force.
type Network struct {
	Revision        int64     `json:"revision"`
	AppliedRevision int64     `json:"appliedRevision"` // last applied in full, 0 for none
	State           string    `json:"state"`           // idle, applying, or failed: the one that came last could not be taken over
	Origin          string    `json:"origin"`          // pushed or pulled
	AppliedAt       time.Time `json:"appliedAt"`
	AuthorityID     string    `json:"authorityId"`
	ControlPrefix   string    `json:"controlPrefix"`
	HubAddress      string    `json:"hubAddress"`
	Members         int       `json:"members"`
	Prefixes        int       `json:"prefixes"`
	Grants          int       `json:"grants"`
}

// Membership is one member of the network. Counts are those of the membership, over
// all of its sessions.
type Membership struct {
	Node           string    `json:"node"`
	ControlAddress string    `json:"controlAddress"`
	ExpiresAt      time.Time `json:"expiresAt"`
	Expired        bool      `json:"expired"` // by the first of both clocks
	Prefixes       int       `json:"prefixes"`
	Sessions       uint64    `json:"sessions"`    // that it has had
	Alternating    bool      `json:"alternating"` // two ends use its key, which was named within 10 min
	Session        *Session  `json:"session"`     // null while it is not connected

	FromPackets uint64 `json:"fromPackets"` // out of its tunnel, those included that were dropped
	FromBytes   uint64 `json:"fromBytes"`
	ToPackets   uint64 `json:"toPackets"` // into its tunnel
	ToBytes     uint64 `json:"toBytes"`
	// Dropped are packets that it sent, by reason in the order of judging; never nil.
	Dropped []Dropped `json:"dropped"`
	// ToDropped is how many packets for it, which had passed, were dropped at its end.
	ToDropped uint64 `json:"toDropped"`
}

// Session is the connection of a member.
type Session struct {
	Lane    string    `json:"lane"`
	Since   time.Time `json:"since"`
	Seconds float64   `json:"seconds"` // it has stood, by the monotonic clock
	Address string    `json:"address"` // where it dials from
	// ToSize is how many bytes one datagram to it holds, FromSize one from it as it
	// says; 0 for not said.
	ToSize      int64   `json:"toDatagramBytes"`
	FromSize    int64   `json:"fromDatagramBytes"`
	RTTSeconds  float64 `json:"rttSeconds"`
	QueuedBytes int     `json:"queuedBytes"`
	QueueLimit  int     `json:"queueLimitBytes"`
	LostParts   uint64  `json:"lostParts"`  // of split packets, whose other part did not come
	Narrowings  uint64  `json:"narrowings"` // times QUIC began anew to measure the path to it, which moved or became narrower
}

// Dropped is how many packets were dropped for one reason.
type Dropped struct {
	Reason  string `json:"reason"`
	Packets uint64 `json:"packets"`
}

// Status returns a Status.
func (h *Hub) Status() any {
	h.gateMu.Lock()
	half := h.gate.total
	h.gateMu.Unlock()
	now, since, socket := h.now(), time.Since(h.start), h.kernel.look(h.metrics.socketDropped)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.table.Load()
	s := Status{
		Socket:    socket,
		PublicKey: h.key.Public().String(), Ephemeral: h.ephemeral, Attached: h.attached, Draining: h.draining,
		Suspended: h.suspended(now), HalfOpen: half, InnerMTU: int(h.terms.InnerMTU),
		Network: h.shownNetwork(t), Members: []Membership{},
	}
	if h.bound.IsValid() {
		s.Bound = h.bound.String()
	}
	if n := t.Network(); n != nil {
		i := 0 // members are in the order of the network's nodes
		for m := range t.Members() {
			x := h.seats[m.ID.Slot()].shown(m, now, since)
			x.Prefixes = len(n.Nodes[i].WorkloadPrefixes)
			s.Members = append(s.Members, x)
			i++
		}
	}
	return s
}

// shownNetwork shows the network in force. The caller holds mu.
func (h *Hub) shownNetwork(t *policy.Table) *Network {
	n := t.Network()
	if n == nil {
		return nil
	}
	x := &Network{
		Revision: n.Revision, AppliedRevision: h.state.applied, State: h.stateName(), Origin: h.state.origin.String(),
		AppliedAt: h.state.since.UTC(), AuthorityID: n.AuthorityID, ControlPrefix: n.ControlPrefix,
		HubAddress: t.HubAddress().String(), Members: len(n.Nodes), Grants: len(n.Grants),
	}
	for i := range n.Nodes {
		x.Prefixes += len(n.Nodes[i].WorkloadPrefixes)
	}
	return x
}

// stateName is the state as it is shown. The caller holds mu.
func (h *Hub) stateName() string {
	if h.state.failed {
		return "failed"
	}
	return string(h.state.name())
}

// shown shows a membership, at a time since the hub began. The caller holds Hub.mu.
func (s *seat) shown(m *policy.Member, now network.Instant, since time.Duration) Membership {
	x := Membership{
		Node: m.NodeID, ControlAddress: m.ControlAddress.String(), ExpiresAt: time.UnixMilli(m.Deadline.Wall).UTC(),
		Expired: m.Deadline.Reached(now), Sessions: s.sessions, Alternating: s.switches.alternate(since),
		FromPackets: s.traffic.fromPackets.Load(), FromBytes: s.traffic.fromBytes.Load(),
		ToPackets: s.traffic.toPackets.Load(), ToBytes: s.traffic.toBytes.Load(),
		ToDropped: s.traffic.toDropped.Load(), Dropped: []Dropped{},
	}
	for r := range policy.Reasons {
		if n := s.traffic.dropped[r].Load(); n > 0 {
			x.Dropped = append(x.Dropped, Dropped{r.String(), n})
		}
	}
	if s.session != nil {
		x.Session = s.session.shown()
	}
	return x
}

func (s *session) shown() *Session {
	s.out.mu.Lock()
	queued := s.out.queue.bytes + s.out.answers.bytes
	s.out.mu.Unlock()
	joined := s.joiner.Stats()
	x := &Session{
		Lane: tunnel.LaneDatagram.String(), Since: s.since.UTC(), Seconds: time.Since(s.began).Seconds(),
		ToSize: s.limit.Load(), FromSize: s.peerSize.Load(), RTTSeconds: s.conn.ConnectionStats().SmoothedRTT.Seconds(),
		QueuedBytes: queued, QueueLimit: maxQueued + maxAnswers, LostParts: joined.Expired + joined.Evicted,
		Narrowings: s.narrowings.Load(),
	}
	if from, err := addrOf(s.address()); err == nil {
		x.Address = from.String()
	}
	return x
}
