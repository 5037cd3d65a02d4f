package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
)

// A datagram of either lane holds a whole inner packet, which needs no header:
// its first byte begins with the IP version, 4 or 6. Or it holds one of the
// two parts of a packet that did not fit:
//
//	+--------+--------------+-----------------+-----------------+- - - - - -
//	| 0x01   | packet       | length of       | offset of       | bytes
//	| 1 byte | number, 3    | the packet, 2   | the bytes, 2    |
//	+--------+--------------+-----------------+-----------------+- - - - - -
//
// Of two parts, one has offset 0 and the other ends where the packet does.
const (
	partKind   = 0x01
	PartHeader = 8 // bytes that a part has before those of the packet
)

var (
	// ErrNoPacket is what is no IP packet: shorter than one, or of another
	// version than 4 and 6, so that its first byte would mean something else.
	ErrNoPacket = errors.New("not an ip packet")

	// ErrPacketTooLong is a packet that does not even fit in two parts.
	ErrPacketTooLong = errors.New("packet does not fit in two datagrams")
)

// A Splitter numbers the split packets of one direction of one tunnel, so that
// parts of different packets are never joined. Any goroutine may use it.
type Splitter struct {
	number atomic.Uint32
}

// Cut says where a packet is cut so that its parts fit datagrams of limit
// bytes: at length if it fits whole, else at the middle, since a limit that
// was believed too large fails two even parts last. ok is false where even two
// parts do not do.
func Cut(length, limit int) (at int, ok bool) {
	if length <= limit {
		return length, true
	}
	half := (length + 1) / 2
	return half, half+PartHeader <= limit
}

// Split returns what carries a packet in datagrams of at most limit bytes: the
// packet itself and nil, or two parts, appended to the first two of bufs'
// slices after cutting them to zero length. It allocates only where those are
// too small.
func (s *Splitter) Split(packet []byte, limit int, bufs *[2][]byte) (first, second []byte, err error) {
	if len(packet) < MinPacket || !isPacket(packet[0]) {
		return nil, nil, ErrNoPacket
	}
	at, ok := Cut(len(packet), limit)
	switch {
	case !ok || len(packet) > MaxInnerMTU:
		return nil, nil, fmt.Errorf("%d bytes, %d a datagram: %w", len(packet), limit, ErrPacketTooLong)
	case at == len(packet):
		return packet, nil, nil
	}
	number := s.number.Add(1)
	bufs[0] = appendPart(bufs[0][:0], number, len(packet), 0, packet[:at])
	bufs[1] = appendPart(bufs[1][:0], number, len(packet), at, packet[at:])
	return bufs[0], bufs[1], nil
}

// isPacket reports whether a datagram that begins with b is a whole packet.
func isPacket(b byte) bool { return b>>4 == 4 || b>>4 == 6 }

func appendPart(dst []byte, number uint32, length, offset int, b []byte) []byte {
	dst = append(dst, partKind, byte(number>>16), byte(number>>8), byte(number))
	dst = binary.BigEndian.AppendUint16(dst, uint16(length))
	dst = binary.BigEndian.AppendUint16(dst, uint16(offset))
	return append(dst, b...)
}

// part is a part as it was read.
type part struct {
	number         uint32
	length, offset int
	bytes          []byte // of the datagram
}

// readPart reads a part of a packet of at most mtu bytes.
func readPart(datagram []byte, mtu int) (part, JoinResult) {
	if len(datagram) <= PartHeader {
		return part{}, JoinPartShort
	}
	p := part{
		number: binary.BigEndian.Uint32(datagram) & 0xffffff,
		length: int(binary.BigEndian.Uint16(datagram[4:])),
		offset: int(binary.BigEndian.Uint16(datagram[6:])),
		bytes:  datagram[PartHeader:],
	}
	switch end := p.offset + len(p.bytes); {
	case p.length < MinPacket || p.length > mtu:
		return part{}, JoinPartLength
	case p.offset == 0 && end >= p.length, p.offset > 0 && end != p.length:
		return part{}, JoinPartEnd
	}
	return p, JoinHeld
}
