package hub

import (
	"fmt"
	"net/netip"

	"serve.zone/relay/hub/policy"
)

// Explanation is what policy says of packets from one address to another, and what
// stands in their way at present besides.
type Explanation struct {
	policy.Explanation      // its Sentence ends with what stands in the way
	FromConnected      bool // the node that has the one address has a session
	ToConnected        bool // the node that has the other has one
	Suspended          bool // nothing is carried: custody may be about to end
}

// Explain says what the network in force does with packets from one address to
// another, and by which rule. It takes no lock and does not wait.
func (h *Hub) Explain(from, to netip.Addr) Explanation {
	t, now := h.table.Load(), h.now()
	x := Explanation{Explanation: t.Explain(from, to, now), Suspended: h.suspended(now)}
	x.FromConnected, x.ToConnected = h.connectedNode(t, x.From.NodeID), h.connectedNode(t, x.To.NodeID)
	if x.Action == policy.Drop {
		return x
	}
	switch {
	case x.Suspended:
		x.Sentence += fmt.Sprintf(" At present it is dropped all the same (%s): %s.", policy.CustodySuspended, policy.CustodySuspended.Says())
	case !x.FromConnected:
		x.Sentence += fmt.Sprintf(" At present none can come: node %s has no session.", x.From.NodeID)
	case x.Action == policy.Relay && !x.ToConnected:
		x.Sentence += fmt.Sprintf(" At present it is dropped all the same (%s): node %s has no session.", policy.DestinationOffline, x.To.NodeID)
	}
	return x
}

// connectedNode reports whether the member of that node id has a session, false when
// there is none of that id.
func (h *Hub) connectedNode(t *policy.Table, id string) bool {
	for m := range t.Members() {
		if m.NodeID == id {
			return h.route(m.ID) != nil
		}
	}
	return false
}
