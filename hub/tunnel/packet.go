package tunnel

import "encoding/binary"

// A packet of the direct lane is a header, in clear and authenticated, and what
// is sealed, with its tag:
//
//	 0        1        2                 4                 8                16
//	+--------+--------+-----------------+-----------------+-----------------+- - - -
//	| kind   | 0      | epoch, low bits | receiver index  | counter         | sealed
//	+--------+--------+-----------------+-----------------+-----------------+- - - -
//
// The last twelve bytes of the header are the nonce: the counter never repeats
// under one key.
const (
	PacketHeader = 16
	packetTag    = 16
	nonceAt      = 4

	// PacketOverhead is what the direct lane adds to what it carries.
	PacketOverhead = PacketHeader + packetTag
)

// PacketKind says what a packet of the direct lane carries. All are below 0x40,
// where no packet of QUIC version 1 begins.
type PacketKind uint8

// The kinds.
const (
	PacketData      PacketKind = 0x01 // what a datagram of the datagram lane would
	PacketProbe     PacketKind = 0x02 // a Probe and padding to the size that is tried
	PacketProbeAck  PacketKind = 0x03 // the Probe that came
	PacketChallenge PacketKind = 0x04 // a Challenge, to an address the peer may have moved to
	PacketResponse  PacketKind = 0x05 // the same Challenge, from there
)

// String returns the kind's name.
func (k PacketKind) String() string {
	switch k {
	case PacketData:
		return "data"
	case PacketProbe:
		return "probe"
	case PacketProbeAck:
		return "probe-ack"
	case PacketChallenge:
		return "challenge"
	case PacketResponse:
		return "response"
	}
	return "unknown"
}

// IsDirect reports whether a UDP datagram that begins with b belongs to the
// direct lane and not to QUIC, which sets 0x40 in every first byte.
func IsDirect(b byte) bool { return b < 0x40 }

// Header is the header of a packet of the direct lane.
type Header struct {
	Kind          PacketKind
	Epoch         uint16 // the low bits of the epoch
	ReceiverIndex uint32
	Counter       uint64
}

// ReadHeader reads the header of a packet that may be one of the direct lane:
// the way to its member. Nothing of it is to be believed before Open.
func ReadHeader(packet []byte) (Header, OpenResult) {
	if len(packet) <= PacketOverhead {
		return Header{}, OpenShort
	}
	h := Header{
		Kind:          PacketKind(packet[0]),
		Epoch:         binary.BigEndian.Uint16(packet[2:]),
		ReceiverIndex: binary.BigEndian.Uint32(packet[4:]),
		Counter:       binary.BigEndian.Uint64(packet[8:]),
	}
	if h.Kind < PacketData || h.Kind > PacketResponse || packet[1] != 0 {
		return Header{}, OpenKind
	}
	return h, OpenNew
}

func appendHeader(dst []byte, h Header) []byte {
	dst = append(dst, byte(h.Kind), 0)
	dst = binary.BigEndian.AppendUint16(dst, h.Epoch)
	dst = binary.BigEndian.AppendUint32(dst, h.ReceiverIndex)
	return binary.BigEndian.AppendUint64(dst, h.Counter)
}

// OpenResult says what became of a packet of the direct lane.
type OpenResult uint8

// The results. Those from OpenShort on are refusals.
const (
	OpenNew          OpenResult = iota // authentic and new
	OpenShort                          // shorter than a header, a byte and a tag
	OpenKind                           // an unknown kind, or a second byte that is not zero
	OpenIndex                          // a receiver index that is nobody's, or another's
	OpenEpoch                          // an epoch that is not open (any more)
	OpenNotAuthentic                   // the tag is wrong
	OpenReplayed                       // authentic, and seen before
	OpenTooOld                         // authentic, and too far below the newest counter to know

	openEnd
)

var openNames = [openEnd]string{
	OpenNew:          "new",
	OpenShort:        "short",
	OpenKind:         "kind",
	OpenIndex:        "index",
	OpenEpoch:        "epoch",
	OpenNotAuthentic: "not-authentic",
	OpenReplayed:     "replayed",
	OpenTooOld:       "too-old",
}

// String returns the result's name.
func (r OpenResult) String() string {
	if r >= openEnd {
		return "unknown"
	}
	return openNames[r]
}

// OpenRefusals returns every refusal, for those who count by it.
func OpenRefusals() []OpenResult {
	var refusals []OpenResult
	for r := OpenShort; r < openEnd; r++ {
		refusals = append(refusals, r)
	}
	return refusals
}
