package policy

import (
	"fmt"
	"net/netip"
	"time"

	"serve.zone/relay/hub/network"
)

// End is what a network says about one end of a packet's way.
type End struct {
	Address netip.Addr
	NodeID  string       // of the node that has it, empty when none has
	Prefix  netip.Prefix // the workload prefix that it is in, invalid when it is in none
	Domain  string       // of that prefix
}

// Explanation is what becomes of packets from one address to another, and by which
// rule.
type Explanation struct {
	Action   Action
	Reason   Reason // of a Drop, and of nothing else
	Revision int64  // of the network that says so, 0 when there is none
	From, To End
	Sentence string // the same for a person
}

// Explain says what the table does with packets from one address to another when
// the node that has the first one sends them. It is what Judge says of a
// well-formed whole packet; of one to the hub, of an ICMP echo request.
func (t *Table) Explain(from, to netip.Addr, now network.Instant) Explanation {
	x := Explanation{Revision: t.Revision(), From: t.end(from), To: t.end(to)}
	v := t.explain(&x, now)
	x.Action, x.Reason = v.Action, v.Reason
	x.Sentence = t.sentence(&x, now)
	return x
}

// explain judges the way between two ends.
func (t *Table) explain(x *Explanation, now network.Instant) Verdict {
	if !x.From.Address.Is4() || !x.To.Address.Is4() {
		return drop(PacketIPv6)
	}
	sender := t.node(x.From.NodeID)
	switch {
	case t.network == nil:
		return drop(SenderUnknown)
	case sender == nil && !isUnicast(x.From.Address):
		return drop(SourceNotUnicast)
	case sender == nil:
		return drop(SourceSpoofed) // whoever sends it
	case sender.Deadline.Reached(now):
		return drop(SenderExpired)
	}
	return t.route(sender, header{source: x.From.Address, destination: x.To.Address, echo: true}, now)
}

// end looks up one address.
func (t *Table) end(a netip.Addr) End {
	e := End{Address: a}
	if !a.Is4() {
		return e
	}
	if prefix, p, ok := t.prefixes.LookupPrefixLPM(netip.PrefixFrom(a, a.BitLen())); ok {
		e.NodeID, e.Prefix, e.Domain = t.slots[p.slot].NodeID, prefix, t.domains[p.domain]
		return e
	}
	for m := range t.Members() {
		if m.ControlAddress == a {
			e.NodeID = m.NodeID
		}
	}
	return e
}

// node returns the member of that node id, nil when there is none.
func (t *Table) node(id string) *Member {
	for m := range t.Members() {
		if m.NodeID == id {
			return m
		}
	}
	return nil
}

// sentence says an explanation to a person.
func (t *Table) sentence(x *Explanation, now network.Instant) string {
	if t.network == nil {
		return "Every packet is dropped: the hub holds no network."
	}
	from, to := t.describe(x.From), t.describe(x.To)
	switch x.Action {
	case Relay:
		return fmt.Sprintf("A packet from %s to %s is relayed: revision %d grants %q to %q.",
			from, to, x.Revision, x.From.Domain, x.To.Domain)
	case Echo:
		return fmt.Sprintf("An ICMP echo request from %s to %s is answered, %d times a second; every other packet between them is dropped.",
			from, to, EchoRequestsPerSecond)
	}
	return fmt.Sprintf("A packet from %s to %s is dropped by revision %d (%s): %s%s.",
		from, to, x.Revision, x.Reason, x.Reason.Says(), t.detail(x, now))
}

// describe says what an address is.
func (t *Table) describe(e End) string {
	switch {
	case e.Prefix.IsValid():
		return fmt.Sprintf("%s (node %s, prefix %s, domain %q)", e.Address, e.NodeID, e.Prefix, e.Domain)
	case e.NodeID != "":
		return fmt.Sprintf("%s (control address of node %s)", e.Address, e.NodeID)
	case e.Address == t.hub:
		return fmt.Sprintf("%s (the hub)", e.Address)
	}
	return fmt.Sprintf("%s (of no node)", e.Address)
}

// detail says what helps to understand a drop beyond its reason.
func (t *Table) detail(x *Explanation, now network.Instant) string {
	switch x.Reason {
	case SenderExpired:
		return expired(t.node(x.From.NodeID).Deadline, now)
	case DestinationExpired:
		return expired(t.node(x.To.NodeID).Deadline, now)
	case SourceSpoofed:
		return ", whichever node sends it"
	case NoGrant:
		if t.grantedBack(x) {
			return ", though one joins them the other way: grants are directed"
		}
	}
	return ""
}

// expired says until when a membership was to last, and by which clock it ended.
func expired(d network.Deadline, now network.Instant) string {
	text := "; its expiresAt is " + time.UnixMilli(d.Wall).UTC().Format(time.RFC3339)
	if now.Wall < d.Wall {
		text += ", which has passed by the monotonic clock: the wall clock was set back"
	}
	return text
}

// grantedBack reports whether packets may pass the other way.
func (t *Table) grantedBack(x *Explanation) bool {
	from, ok := t.prefixes.Lookup(x.From.Address)
	to, found := t.prefixes.Lookup(x.To.Address)
	if !ok || !found {
		return false
	}
	_, granted := t.grants[grantOf(to.domain, from.domain)]
	return granted
}
