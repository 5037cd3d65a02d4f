package policy

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/net/ipv4"
)

// wire is an IPv4 header as the second parser reads it: it writes the first bits of
// the packet down and cuts fields out of them by the drawing of RFC 791 §3.1. It shares
// nothing with the first one.
type wire struct {
	fault               string // name of the reason that the packet is dropped for, empty when well formed
	source, destination netip.Addr
	whole               bool
	echo                bool
	protocol            uint64
	offset              uint64 // bytes
	more                bool
	length              uint64
}

func readWire(packet []byte) wire {
	var bits [24 * 8]byte
	for i := range bits {
		if i/8 < len(packet) {
			bits[i] = packet[i/8] >> (7 - i%8) & 1
		}
	}
	field := func(from, to int) (n uint64) {
		for _, bit := range bits[from:to] {
			n = 2*n + uint64(bit)
		}
		return n
	}
	address := func(from int) netip.Addr {
		n := field(from, from+32)
		return netip.AddrFrom4([4]byte{byte(n / 0x1000000), byte(n / 0x10000), byte(n / 0x100), byte(n)})
	}
	if len(packet) == 0 {
		return wire{fault: "packet-short"}
	}
	if version := field(0, 4); version == 6 {
		return wire{fault: "packet-ipv6"}
	} else if version != 4 {
		return wire{fault: "packet-version"}
	}
	if len(packet) < 20 {
		return wire{fault: "packet-short"}
	}
	words := field(4, 8)
	w := wire{
		length: field(16, 32), more: field(50, 51) == 1, offset: 8 * field(51, 64), protocol: field(72, 80),
		source: address(96), destination: address(128),
	}
	w.whole = !w.more && w.offset == 0
	w.echo = w.whole && w.protocol == 1 && len(packet) >= 28 && field(160, 168) == 8 && field(168, 176) == 0
	payload := uint64(len(packet)) - 20
	switch {
	case words < 5, words*4 > uint64(len(packet)):
		w.fault = "packet-header-length"
	case words != 5:
		w.fault = "packet-options"
	case w.length != uint64(len(packet)):
		w.fault = "packet-length"
	case w.whole:
	case payload == 0, w.more && payload%8 > 0, 20+w.offset+payload > 65535:
		w.fault = "fragment-malformed"
	case w.offset == 0 && 20+payload < 68:
		w.fault = "fragment-tiny"
	case w.offset > 0 && 20+w.offset < 68:
		w.fault = "fragment-overlap"
	}
	return w
}

// againstSystem compares a well-formed packet with what the parser of
// golang.org/x/net/ipv4 reads in it.
func againstSystem(packet []byte, h header) error {
	if len(packet) > 65535 {
		return errors.New("longer than a packet can be")
	}
	want, err := ipv4.ParseHeader(packet)
	if err != nil {
		return err
	}
	source, _ := netip.AddrFromSlice(want.Src.To4())
	destination, _ := netip.AddrFromSlice(want.Dst.To4())
	isWhole := want.FragOff == 0 && want.Flags&ipv4.MoreFragments == 0
	switch {
	case want.Version != 4, want.Len != headerLength, want.TotalLen != len(packet), len(want.Options) != 0:
		return fmt.Errorf("it reads %v", want)
	case source != h.source, destination != h.destination:
		return fmt.Errorf("it reads %v to %v", source, destination)
	case h.echo && (!isWhole || want.Protocol != protocolICMP):
		return fmt.Errorf("it reads no whole ICMP packet: %v", want)
	}
	return nil
}
