package policy

import (
	"fmt"
	"net/netip"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
)

// oracle judges packets slowly: from the network as it was written, by looking at
// every prefix and every grant.
type oracle struct {
	network  contract.VPNNetwork
	admitted network.Instant
	control  netip.Prefix
	prefixes []owned
}

// owned is one workload prefix.
type owned struct {
	prefix netip.Prefix
	node   *contract.VPNNode
	domain string
}

func newOracle(x contract.VPNNetwork, admitted network.Instant) *oracle {
	o := &oracle{network: x, admitted: admitted, control: netip.MustParsePrefix(x.ControlPrefix)}
	for i := range x.Nodes {
		for _, w := range x.Nodes[i].WorkloadPrefixes {
			o.prefixes = append(o.prefixes, owned{netip.MustParsePrefix(w.CIDR), &x.Nodes[i], w.PolicyDomain})
		}
	}
	return o
}

// facts are what the oracle finds out about one packet.
type facts struct {
	w           wire
	sender      *contract.VPNNode // nil when it is no member
	senderEnded bool

	own                    bool // the source is the sender's control address
	sourceNode             *contract.VPNNode
	sourceDomain           string
	toHub, toControl       bool
	destinationNode        *contract.VPNNode
	destinationDomain      string
	destinationEnded       bool
	granted                bool
	sourceOdd              bool
	toMulticast, toAnybody bool
}

var (
	multicast   = netip.MustParsePrefix("224.0.0.0/4")
	everybody   = netip.MustParsePrefix("255.255.255.255/32")
	unspecified = netip.MustParsePrefix("0.0.0.0/32")
)

// ended compares both clocks with the time the node was given, counted from when
// the network was admitted.
func (o *oracle) ended(n *contract.VPNNode, now network.Instant) bool {
	passed := now.Mono - o.admitted.Mono
	return now.Wall >= n.ExpiresAt || passed >= n.ExpiresAt-o.admitted.Wall
}

func (o *oracle) find(a netip.Addr) (node *contract.VPNNode, domain string) {
	for _, p := range o.prefixes {
		if p.prefix.Contains(a) {
			return p.node, p.domain
		}
	}
	return nil, ""
}

func (o *oracle) look(packet []byte, sender string, now network.Instant) facts {
	f := facts{w: readWire(packet)}
	for i := range o.network.Nodes {
		if o.network.Nodes[i].NodeID == sender {
			f.sender = &o.network.Nodes[i]
		}
	}
	if f.sender == nil || f.w.fault != "" {
		f.senderEnded = f.sender != nil && o.ended(f.sender, now)
		return f
	}
	f.senderEnded = o.ended(f.sender, now)
	source, destination := f.w.source, f.w.destination
	f.own = source.String() == f.sender.ControlAddress
	f.sourceOdd = multicast.Contains(source) || everybody.Contains(source) || unspecified.Contains(source)
	f.sourceNode, f.sourceDomain = o.find(source)
	f.toControl = o.control.Contains(destination)
	f.toHub = f.toControl && destination.Prev() == o.control.Addr()
	f.toMulticast = multicast.Contains(destination)
	f.toAnybody = everybody.Contains(destination)
	f.destinationNode, f.destinationDomain = o.find(destination)
	f.destinationEnded = f.destinationNode != nil && o.ended(f.destinationNode, now)
	for _, g := range o.network.Grants {
		f.granted = f.granted || g.SourceDomain == f.sourceDomain && g.DestinationDomain == f.destinationDomain
	}
	return f
}

// applies says of each reason that a table can give when it applies, if none before
// it does.
var applies = [Reasons]func(facts) bool{
	SenderUnknown:        func(f facts) bool { return f.sender == nil },
	SenderExpired:        func(f facts) bool { return f.senderEnded },
	PacketIPv6:           faulty("packet-ipv6"),
	PacketVersion:        faulty("packet-version"),
	PacketShort:          faulty("packet-short"),
	PacketHeaderLength:   faulty("packet-header-length"),
	PacketOptions:        faulty("packet-options"),
	PacketLength:         faulty("packet-length"),
	FragmentMalformed:    faulty("fragment-malformed"),
	FragmentTiny:         faulty("fragment-tiny"),
	FragmentOverlap:      faulty("fragment-overlap"),
	SourceNotUnicast:     func(f facts) bool { return f.sourceOdd },
	SourceSpoofed:        func(f facts) bool { return !f.own && f.sourceNode != f.sender },
	ControlSource:        func(f facts) bool { return f.own && !f.toHub },
	ControlProtocol:      func(f facts) bool { return f.own && f.toHub && !f.w.echo },
	DestinationMulticast: func(f facts) bool { return !f.own && f.toMulticast },
	DestinationBroadcast: func(f facts) bool { return !f.own && f.toAnybody },
	ControlDestination:   func(f facts) bool { return !f.own && f.toControl },
	DestinationUnknown:   func(f facts) bool { return !f.own && f.destinationNode == nil },
	Hairpin:              func(f facts) bool { return !f.own && f.destinationNode == f.sender },
	NoGrant:              func(f facts) bool { return !f.own && !f.granted },
	DestinationExpired:   func(f facts) bool { return !f.own && f.destinationEnded },
}

func faulty(name string) func(facts) bool { return func(f facts) bool { return f.w.fault == name } }

// judge says in one text what becomes of a packet.
func (o *oracle) judge(packet []byte, sender string, now network.Instant) string {
	f := o.look(packet, sender, now)
	for r := range Reasons {
		if applies[r] != nil && applies[r](f) {
			return "drop " + r.String()
		}
	}
	if f.own {
		return "echo"
	}
	return "relay to " + f.destinationNode.NodeID
}

// said is a verdict in the oracle's words.
func said(v Verdict) string {
	switch {
	case v.Action == Relay && v.To != nil && v.Reason == 0:
		return "relay to " + v.To.NodeID
	case v.Action == Echo && v.To == nil && v.Reason == 0:
		return "echo"
	case v.Action == Drop && v.To == nil:
		return "drop " + v.Reason.String()
	}
	return fmt.Sprintf("an impossible verdict: %+v", v)
}
