package policy

import (
	"encoding/binary"
	"net/netip"

	"pgregory.net/rapid"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/network/networktest"
)

// admitted is when the networks of these tests are admitted.
var admitted = network.Instant{Wall: networktest.Admitted, Mono: 1_000}

// in is so many milliseconds after that, by both clocks.
func in(ms int64) network.Instant {
	return network.Instant{Wall: admitted.Wall + ms, Mono: admitted.Mono + ms}
}

// compile compiles a network to replace prev.
func compile(t rapid.TB, prev *Table, x contract.VPNNetwork) *Table {
	t.Helper()
	table, err := Compile(prev, x, admitted)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// idOf returns the membership of a node.
func idOf(t rapid.TB, table *Table, node string) ID {
	t.Helper()
	m := table.node(node)
	if m == nil {
		t.Fatalf("%s is no member", node)
	}
	return m.ID
}

// packet is a whole UDP packet of 20 bytes more than its header, after some changes.
func packet(from, to string, changes ...func([]byte)) []byte {
	p := make([]byte, headerLength+20)
	p[0] = 4<<versionShift | headerLength/headerLengthUnits
	binary.BigEndian.PutUint16(p[totalLengthAt:], uint16(len(p)))
	p[ttlAt], p[protocolAt] = 7, 17
	source, destination := netip.MustParseAddr(from).As4(), netip.MustParseAddr(to).As4()
	copy(p[sourceAt:], source[:])
	copy(p[destinationAt:], destination[:])
	for _, change := range changes {
		change(p)
	}
	return p
}

// echo makes of a packet an ICMP echo request with valid checksums.
func echo(p []byte) {
	p[protocolAt] = protocolICMP
	p[icmpTypeAt], p[icmpCodeAt] = icmpEchoRequest, icmpOnlyCode
	seal(p)
}

// seal writes both checksums of an ICMP packet.
func seal(p []byte) {
	binary.BigEndian.PutUint16(p[checksumAt:], 0)
	binary.BigEndian.PutUint16(p[checksumAt:], checksumOf(p[:headerLength]))
	binary.BigEndian.PutUint16(p[icmpChecksumAt:], 0)
	binary.BigEndian.PutUint16(p[icmpChecksumAt:], checksumOf(p[headerLength:]))
}

// checksumOf is that of RFC 1071 §1, spelled as its text does.
func checksumOf(b []byte) uint16 {
	sum := 0
	for i, c := range b {
		if i%2 == 0 {
			sum += int(c) * 256
		} else {
			sum += int(c)
		}
	}
	for sum > 0xffff {
		sum = sum%0x10000 + sum/0x10000
	}
	return uint16(0xffff - sum)
}

// sized makes a packet of a length that is right in its header.
func sized(p []byte, length int) []byte {
	p = append(p, make([]byte, 70_000)...)[:length]
	if length >= totalLengthAt+2 {
		binary.BigEndian.PutUint16(p[totalLengthAt:], uint16(length))
	}
	return p
}

// fragment sets the offset, in bytes, and the flag that more follow.
func fragment(offset int, more bool) func([]byte) {
	return func(p []byte) {
		word := uint16(offset / offsetUnit)
		if more {
			word |= moreFragments
		}
		binary.BigEndian.PutUint16(p[fragmentAt:], word)
	}
}

// at sets one byte.
func at(i int, b byte) func([]byte) { return func(p []byte) { p[i] = b } }

// granted is a network of four nodes with two prefixes each: node-000 may send to
// node-001 from d0.0 to d1.0, and node-001 to node-002 from d1.0 to d2.0. node-003
// expires at once.
func granted() contract.VPNNetwork {
	x := networktest.Grant(networktest.Grid(4, 2), "d0.0", "d1.0", "d1.0", "d2.0", "d0.0", "d3.0")
	x.Nodes[3].ExpiresAt = networktest.Admitted
	return x
}
