package client

import "time"

// EscrowSection is the renewals that are held.
type EscrowSection struct {
	Attached      bool         `json:"attached"` // a session to Cloudly stands, so nothing is released
	ClockSuspect  bool         `json:"clockSuspect"`
	Runs          uint64       `json:"runs"`     // nodes for which something is held
	Renewals      uint64       `json:"renewals"` // whose window has not ended
	HeldBytes     uint64       `json:"heldBytes"`
	HeldLimit     uint64       `json:"heldLimitBytes"`
	PushesRunning uint64       `json:"pushesRunning"`
	Nodes         []EscrowNode `json:"nodes"`
}

// EscrowNode is the coverage of a node.
type EscrowNode struct {
	ID           string          `json:"id"`
	Held         uint64          `json:"held"`
	ExpiresAt    time.Time       `json:"expiresAt"`    // of the last window; zero if nothing was ever held
	Reachable    bool            `json:"reachable"`    // it has a session here
	Acknowledged *EscrowDelivery `json:"acknowledged"` // the last to the relay; nil while there was none
}

// EscrowDelivery says which renewal was delivered.
type EscrowDelivery struct {
	Sequence int64 `json:"sequence"`
}

// IngressSection is the route table and who asks for it.
type IngressSection struct {
	Table       *RouteTable     `json:"table"` // nil while none is held
	Ingresses   []Ingress       `json:"ingresses"`
	LastRefusal *IngressRefusal `json:"lastRefusal"`
}

// RouteTable is the table that is held.
type RouteTable struct {
	Revision   int64     `json:"revision"`
	AppliedAt  time.Time `json:"appliedAt"`
	Origin     string    `json:"origin"` // pushed or pulled
	Routes     uint64    `json:"routes"`
	PortRoutes uint64    `json:"portRoutes"`
	Bytes      uint64    `json:"bytes"`
}

// Ingress is one that is registered.
type Ingress struct {
	Node   string    `json:"node"`
	Since  time.Time `json:"since"`
	Pulled int64     `json:"pulled"` // the revision it was answered last, 0 for none
}

// IngressRefusal is the last registration of an ingress that Cloudly refused.
type IngressRefusal struct {
	Node   string    `json:"node"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// HubSection is the VPN hub.
type HubSection struct {
	Bound     string      `json:"bound"`
	Suspended bool        `json:"suspended"` // nothing is carried at present
	HalfOpen  uint64      `json:"halfOpenConnections"`
	Socket    *HubSocket  `json:"socket"`
	Network   *HubNetwork `json:"network"` // nil while none is held
	Members   []HubMember `json:"members"`
}

// HubSocket is what the kernel says of the hub's socket.
type HubSocket struct {
	DroppedPackets uint64 `json:"droppedPackets"` // that had no room
}

// HubNetwork is the network in force.
type HubNetwork struct {
	Revision  int64     `json:"revision"`
	State     string    `json:"state"`  // idle, applying or failed
	Origin    string    `json:"origin"` // pushed or pulled
	AppliedAt time.Time `json:"appliedAt"`
	Members   uint64    `json:"members"`
	Prefixes  uint64    `json:"prefixes"`
	Grants    uint64    `json:"grants"`
}

// HubMember is a member of the network. Counts are over all of its sessions.
type HubMember struct {
	Node        string      `json:"node"`
	Expired     bool        `json:"expired"`
	Sessions    uint64      `json:"sessions"`    // that it has had
	Alternating bool        `json:"alternating"` // two ends use its key
	Session     *HubSession `json:"session"`     // nil while it is not connected
	FromPackets uint64      `json:"fromPackets"` // out of its tunnel, those included that were dropped
	FromBytes   uint64      `json:"fromBytes"`
	ToPackets   uint64      `json:"toPackets"` // into its tunnel
	ToBytes     uint64      `json:"toBytes"`
	Dropped     []HubDrops  `json:"dropped"`   // packets that it sent
	ToDropped   uint64      `json:"toDropped"` // packets for it, at its end
}

// HubDrops is how many packets were dropped for a reason.
type HubDrops struct {
	Reason  string `json:"reason"`
	Packets uint64 `json:"packets"`
}

// HubSession is the connection of a member.
type HubSession struct {
	Lane       string  `json:"lane"`
	Seconds    float64 `json:"seconds"` // it has stood
	Address    string  `json:"address"` // where it dials from
	ToSize     uint64  `json:"toDatagramBytes"`
	RTTSeconds float64 `json:"rttSeconds"`
}
