package policy

import (
	"encoding/binary"

	"serve.zone/relay/hub/network"
)

// EchoRequestsPerSecond bounds the answers to one member, so that it can measure
// its way to the hub and cannot make the hub work (design §5.4).
const EchoRequestsPerSecond = 10

// EchoBudget admits at most EchoRequestsPerSecond echo requests of one member
// within any second. The zero value is ready. It belongs to a membership and not
// to a session, and is not safe for concurrent use.
type EchoBudget struct {
	admitted [EchoRequestsPerSecond]int64 // the last ones in turn, by the monotonic clock
	next     int                          // the oldest of them, once all are used
	full     bool
}

// Take reports whether one more request is answered.
func (b *EchoBudget) Take(now network.Instant) bool {
	const second = 1000 // milliseconds
	if b.full && now.Mono-b.admitted[b.next] < second {
		return false
	}
	b.admitted[b.next] = now.Mono
	b.next++
	if b.next == len(b.admitted) {
		b.next, b.full = 0, true
	}
	return true
}

// echoTTL is that of a packet which begins its way here (RFC 1700).
const echoTTL = 64

const ttlAt = 8

// AnswerEcho turns an echo request, for which a table said Echo, into its reply
// in place (RFC 792, RFC 1122 §3.2.2.6). A request whose ICMP checksum was wrong
// makes a reply whose checksum is wrong as well, which its sender discards.
func AnswerEcho(packet []byte) {
	var source [addressLength]byte
	copy(source[:], packet[sourceAt:])
	copy(packet[sourceAt:], packet[destinationAt:destinationAt+addressLength])
	copy(packet[destinationAt:], source[:])
	packet[ttlAt] = echoTTL
	binary.BigEndian.PutUint16(packet[checksumAt:], 0)
	binary.BigEndian.PutUint16(packet[checksumAt:], ^sumOf(packet[:headerLength]))

	// The type was the one thing that changed: RFC 1624 §3, equation 3.
	packet[icmpTypeAt] = icmpEchoReply
	old := binary.BigEndian.Uint16(packet[icmpChecksumAt:])
	sum := ^folded(uint32(^old) + uint32(^uint16(icmpEchoRequest<<8)) + icmpEchoReply<<8)
	if sum == 0 {
		// Of the two zeros of one's complement this one is right even where every
		// other byte of the reply is 0.
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(packet[icmpChecksumAt:], sum)
}

// sumOf is the one's complement sum of an even number of bytes.
func sumOf(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	return folded(sum)
}

// folded adds the carries of a sum of 16-bit words to it.
func folded(sum uint32) uint16 {
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
