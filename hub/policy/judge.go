package policy

import (
	"net/netip"

	"serve.zone/relay/hub/network"
)

// Action is what is done with a packet. Its zero value drops.
type Action uint8

// The actions.
const (
	Drop    Action = iota // for a reason
	Relay                 // to another member
	Echo                  // answered by the hub itself, within the sender's EchoBudget
	Actions               // how many there are
)

var actionNames = [Actions]string{Drop: "drop", Relay: "relay", Echo: "echo"}

// String returns the name of the action.
func (a Action) String() string { return actionNames[a] }

// Verdict is what a table says of a packet. Its zero value drops.
type Verdict struct {
	Action Action
	Reason Reason  // of a Drop, and of nothing else
	To     *Member // of a Relay; whether it has a live session is not the table's to know
}

func drop(why Reason) Verdict { return Verdict{Reason: why} }

// Judge says what is done with a packet that came out of the tunnel of a member
// (contract §10.7, design §5.4). It changes nothing and allocates nothing; the
// packet may be reused as soon as it returns.
//
// Nothing is taken on trust from whoever found the sender: a membership that is
// not in force, or has ended, sends nothing.
func (t *Table) Judge(packet []byte, sender ID, now network.Instant) Verdict {
	from := t.Member(sender)
	if from == nil {
		return drop(SenderUnknown)
	}
	if from.Deadline.Reached(now) {
		return drop(SenderExpired)
	}
	h, fault, ok := parse(packet)
	if !ok {
		return drop(fault)
	}
	return t.route(from, h, now)
}

// route judges the addresses.
func (t *Table) route(from *Member, h header, now network.Instant) Verdict {
	if !isUnicast(h.source) {
		return drop(SourceNotUnicast)
	}
	if h.source == from.ControlAddress {
		return t.toHub(h)
	}
	source, ok := t.prefixes.Lookup(h.source)
	if !ok || source.slot != from.ID.slot {
		return drop(SourceSpoofed)
	}
	switch {
	case h.destination.IsMulticast():
		return drop(DestinationMulticast)
	case h.destination == broadcast:
		return drop(DestinationBroadcast)
	case t.control.Contains(h.destination):
		return drop(ControlDestination)
	}
	destination, ok := t.prefixes.Lookup(h.destination)
	if !ok {
		return drop(DestinationUnknown)
	}
	if destination.slot == source.slot {
		return drop(Hairpin)
	}
	if _, granted := t.grants[grantOf(source.domain, destination.domain)]; !granted {
		return drop(NoGrant)
	}
	to := t.slots[destination.slot]
	if to.Deadline.Reached(now) {
		return drop(DestinationExpired)
	}
	return Verdict{Action: Relay, To: to}
}

// toHub judges a packet from the sender's own control address: the hub answers an
// echo request, which is the one exception to contract §10.7.
func (t *Table) toHub(h header) Verdict {
	switch {
	case h.destination != t.hub:
		return drop(ControlSource)
	case !h.echo:
		return drop(ControlProtocol)
	}
	return Verdict{Action: Echo}
}

// broadcast is the limited broadcast address (RFC 919 §7). Which addresses of a
// workload prefix are broadcast, if any, is known to its node alone.
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// isUnicast reports whether a packet may have that source address
// (RFC 1122 §3.2.1.3). A prefix of a network may cover others.
func isUnicast(a netip.Addr) bool { return !a.IsMulticast() && !a.IsUnspecified() && a != broadcast }
