package hub_test

import (
	"encoding/binary"
	"net/netip"
)

// inner is a packet that a test composes: an IPv4 packet as it should be, which a test
// then breaks.
type inner struct {
	from, to netip.Addr
	number   uint32 // the first four bytes behind the header
	length   int    // in all; 24 where it is less
	change   []func(p []byte)
}

// Of the IPv4 header (RFC 791 §3.1).
const (
	ipv4Header    = 20
	atTotalLength = 2
	atFragment    = 6
	atProtocol    = 9
	atChecksum    = 10
	atSource      = 12
	atDestination = 16
	more          = 0x2000
)

// bytes returns the packet, with a checksum of what the header is in the end.
func (x inner) bytes() []byte {
	p := make([]byte, max(x.length, ipv4Header+4))
	p[0], p[8], p[atProtocol] = 0x45, 64, 17
	binary.BigEndian.PutUint16(p[atTotalLength:], uint16(len(p)))
	from, to := x.from.As4(), x.to.As4()
	copy(p[atSource:], from[:])
	copy(p[atDestination:], to[:])
	binary.BigEndian.PutUint32(p[ipv4Header:], x.number)
	for _, change := range x.change {
		change(p)
	}
	binary.BigEndian.PutUint16(p[atChecksum:], 0)
	binary.BigEndian.PutUint16(p[atChecksum:], checksum(p[:ipv4Header]))
	return p
}

// checksum is that of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// fragment makes a packet a fragment that begins at an offset in bytes.
func fragment(offset int, flags uint16) func(p []byte) {
	return func(p []byte) { binary.BigEndian.PutUint16(p[atFragment:], uint16(offset/8)|flags) }
}

// echoing makes a packet an ICMP echo request (RFC 792).
func echoing(p []byte) {
	p[atProtocol] = 1
	copy(p[ipv4Header:], []byte{8, 0, 0, 0})
	binary.BigEndian.PutUint16(p[ipv4Header+2:], checksum(p[ipv4Header:]))
}

// numberOf is the number that a test gave a packet.
func numberOf(packet []byte) uint32 { return binary.BigEndian.Uint32(packet[ipv4Header:]) }

// controlOf is the control address of node n, as admit gives it.
func controlOf(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 90, 0, byte(n + 10)}) }

// hubControl is the hub's own control address.
var hubControl = netip.AddrFrom4([4]byte{10, 90, 0, 1})
