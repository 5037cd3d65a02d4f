package policy

import "serve.zone/relay/duty"

// Reason is why a packet was dropped. There is one list of them for the whole hub:
// the name is the label of the counter, the reason field of an event and the
// title of a section of drops.md. A name is API: it is never given another
// meaning.
type Reason uint8

// The reasons, in the order in which a packet is judged: it is dropped for the
// first one that applies. The last five are found out where packets are carried, since
// no table knows of sessions, rates, queues, paths or custody.
const (
	SenderUnknown        Reason = iota // its membership is not one of the network in force
	SenderExpired                      // its membership has ended
	PacketIPv6                         // the tunnel carries IPv4 alone
	PacketVersion                      // neither IPv4 nor IPv6
	PacketShort                        // shorter than an IPv4 header
	PacketHeaderLength                 // the header is too short, or longer than the packet
	PacketOptions                      // the header has options
	PacketLength                       // the total length is not the length of the packet
	FragmentMalformed                  // no fragmentation makes such a fragment
	FragmentTiny                       // a first fragment that leaves room to overwrite a transport header
	FragmentOverlap                    // a later fragment that overwrites a transport header
	SourceNotUnicast                   // no host has such a source address
	SourceSpoofed                      // the source address is not one of the sender
	ControlSource                      // from the sender's control address to anything but the hub
	ControlProtocol                    // to the hub, and not an ICMP echo request
	DestinationMulticast               // the tunnel carries unicast alone
	DestinationBroadcast               // the same
	ControlDestination                 // from a workload to an address of the control prefix
	DestinationUnknown                 // the destination address is in no workload prefix
	Hairpin                            // the destination address is in a prefix of the sender itself
	NoGrant                            // no grant from the domain of the source to that of the destination
	DestinationExpired                 // the membership of the destination has ended
	DestinationOffline                 // the destination has no live session
	EchoRate                           // more than EchoRequestsPerSecond to the hub
	QueueFull                          // too much waits for the destination already
	PathTooSmall                       // it does not fit the path to the destination, even in two parts
	CustodySuspended                   // custody of the cluster may be about to end
	Reasons                            // how many there are
)

// reasons says each reason to a person. drops.md says more.
var reasons = [Reasons]struct{ name, says string }{
	SenderUnknown:        {"sender-unknown", "the sender is no member of the network in force"},
	SenderExpired:        {"sender-expired", "the membership of the sender has ended"},
	PacketIPv6:           {"packet-ipv6", "the tunnel carries IPv4 alone"},
	PacketVersion:        {"packet-version", "it is neither IPv4 nor IPv6"},
	PacketShort:          {"packet-short", "it is shorter than an IPv4 header"},
	PacketHeaderLength:   {"packet-header-length", "its IPv4 header is shorter than 20 bytes or longer than the packet"},
	PacketOptions:        {"packet-options", "its IPv4 header has options"},
	PacketLength:         {"packet-length", "its total length is not the length of the packet"},
	FragmentMalformed:    {"fragment-malformed", "no fragmentation of a packet makes such a fragment"},
	FragmentTiny:         {"fragment-tiny", "it is a first fragment of less than 48 bytes, which no network makes"},
	FragmentOverlap:      {"fragment-overlap", "it is a later fragment that begins within the first 48 bytes, which no network makes"},
	SourceNotUnicast:     {"source-not-unicast", "its source is no address of one host"},
	SourceSpoofed:        {"source-spoofed", "its source is no address of the sender"},
	ControlSource:        {"control-source", "from its control address a node may reach the hub alone"},
	ControlProtocol:      {"control-protocol", "the hub answers ICMP echo requests alone"},
	DestinationMulticast: {"destination-multicast", "the tunnel carries no multicast"},
	DestinationBroadcast: {"destination-broadcast", "the tunnel carries no broadcast"},
	ControlDestination:   {"control-destination", "no workload may reach an address of the control prefix"},
	DestinationUnknown:   {"destination-unknown", "its destination is in no workload prefix of the network"},
	Hairpin:              {"hairpin", "its destination is in a prefix of the sender itself"},
	NoGrant:              {"no-grant", "no grant joins the domain of the source to that of the destination"},
	DestinationExpired:   {"destination-expired", "the membership of the destination has ended"},
	DestinationOffline:   {"destination-offline", "the destination has no live session"},
	EchoRate:             {"echo-rate", "the sender asks the hub more than 10 times a second"},
	QueueFull:            {"queue-full", "as much waits for its destination as may wait"},
	PathTooSmall:         {"path-too-small", "it does not fit the path to its destination, even in two parts"},
	CustodySuspended:     {"custody-suspended", "the custody of the cluster may be about to end"},
}

// String returns the name of the reason.
func (r Reason) String() string { return reasons[r].name }

// Says returns the reason as half a sentence whose subject is a packet.
func (r Reason) Says() string { return reasons[r].says }

// NewDropCounters makes the counter of dropped packets, one series a reason.
func NewDropCounters(m *duty.Metrics) *duty.By[Reason, duty.Counter] {
	return duty.CounterBy(m, "relay_hub_dropped_packets_total", "Packets of members that the hub dropped, by reason.",
		"reason", Reasons)
}
