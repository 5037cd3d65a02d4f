package policy

import (
	"encoding/binary"
	"net/netip"
)

// The IPv4 header (RFC 791 §3.1). Options are never carried, so it has one length.
const (
	headerLength   = 20
	totalLengthAt  = 2
	fragmentAt     = 6
	protocolAt     = 9
	checksumAt     = 10
	sourceAt       = 12
	destinationAt  = 16
	moreFragments  = 0x2000
	offsetMask     = 0x1fff
	offsetUnit     = 8 // bytes
	maximumPayload = 65535 - headerLength
)

// firstFragment is what a first fragment holds at least: every network carries 68
// bytes in one piece (RFC 791 §3.2). What lies behind belongs to no transport
// header, so that a later fragment may overlap nothing that anybody filters by
// (RFC 1858 §3, RFC 3128).
const firstFragment = 68 - headerLength

const (
	protocolICMP      = 1
	icmpHeaderLength  = 8 // RFC 792
	icmpTypeAt        = headerLength
	icmpCodeAt        = headerLength + 1
	icmpChecksumAt    = headerLength + 2
	icmpEchoReply     = 0
	icmpEchoRequest   = 8
	icmpOnlyCode      = 0
	addressLength     = 4
	versionShift      = 4
	headerLengthMask  = 0x0f
	headerLengthUnits = 4 // bytes
)

// header is what a packet is judged by.
type header struct {
	source, destination netip.Addr
	echo                bool // a whole ICMP echo request
}

// parse reads a packet as far as it is judged: its addresses, and that it is a
// well-formed whole packet or fragment without options. The header's checksum and
// everything behind the header are the receiver's to check; a tag has vouched for
// both since the sender.
func parse(packet []byte) (h header, fault Reason, ok bool) {
	if fault, ok = judgeShape(packet); !ok {
		return header{}, fault, false
	}
	fragment := binary.BigEndian.Uint16(packet[fragmentAt:])
	whole := fragment&(moreFragments|offsetMask) == 0
	if !whole {
		if fault, ok = judgeFragment(fragment, len(packet)-headerLength); !ok {
			return header{}, fault, false
		}
	}
	h.source = netip.AddrFrom4([addressLength]byte(packet[sourceAt:]))
	h.destination = netip.AddrFrom4([addressLength]byte(packet[destinationAt:]))
	h.echo = whole && isEchoRequest(packet)
	return h, 0, true
}

// judgeShape judges version and lengths. Behind it a packet has a whole header of
// 20 bytes.
func judgeShape(packet []byte) (fault Reason, ok bool) {
	if len(packet) == 0 {
		return PacketShort, false
	}
	switch packet[0] >> versionShift {
	case 4:
	case 6:
		return PacketIPv6, false
	default:
		return PacketVersion, false
	}
	if len(packet) < headerLength {
		return PacketShort, false
	}
	length := int(packet[0]&headerLengthMask) * headerLengthUnits
	switch {
	case length < headerLength || length > len(packet):
		return PacketHeaderLength, false
	case length > headerLength:
		return PacketOptions, false
	case int(binary.BigEndian.Uint16(packet[totalLengthAt:])) != len(packet):
		return PacketLength, false
	}
	return 0, true
}

// judgeFragment judges a packet that is not whole by its own numbers alone.
// Whether it overlaps another fragment, which only reassembly can know, is the
// receiver's to judge: nothing is decided here by what a fragment carries.
func judgeFragment(fragment uint16, payload int) (fault Reason, ok bool) {
	more := fragment&moreFragments != 0
	offset := int(fragment&offsetMask) * offsetUnit
	switch {
	case payload == 0, more && payload%offsetUnit != 0, offset+payload > maximumPayload:
		return FragmentMalformed, false
	case offset == 0 && payload < firstFragment:
		return FragmentTiny, false
	case offset != 0 && offset < firstFragment:
		return FragmentOverlap, false
	}
	return 0, true
}

// isEchoRequest reports whether a whole packet is an ICMP echo request.
func isEchoRequest(packet []byte) bool {
	return packet[protocolAt] == protocolICMP && len(packet) >= headerLength+icmpHeaderLength &&
		packet[icmpTypeAt] == icmpEchoRequest && packet[icmpCodeAt] == icmpOnlyCode
}
