package tunnel

import "encoding/binary"

// A Probe asks whether a packet of its size arrives. The answer is a Probe with
// the same id and the size that arrived.
type Probe struct {
	ID   uint64 // the sender's choice, new for each probe
	Size uint16 // of the UDP datagram's payload, in bytes
}

// probeSize is the length of a probe without padding: id and size.
const probeSize = 10

// AppendProbe appends a probe and pads it with zeros so that the sealed packet
// has p.Size bytes, if it is not longer anyway.
func AppendProbe(dst []byte, p Probe) []byte {
	dst = AppendProbeAck(dst, p)
	if padding := int(p.Size) - PacketOverhead - probeSize; padding > 0 {
		dst = append(dst, make([]byte, padding)...)
	}
	return dst
}

// AppendProbeAck appends the answer to a probe.
func AppendProbeAck(dst []byte, p Probe) []byte {
	dst = binary.BigEndian.AppendUint64(dst, p.ID)
	return binary.BigEndian.AppendUint16(dst, p.Size)
}

// ReadProbe reads what was sealed in a probe. A size that is not the packet's
// own, and padding other than zeros, are refused.
func ReadProbe(payload []byte) (Probe, bool) {
	if len(payload) < probeSize {
		return Probe{}, false
	}
	for _, b := range payload[probeSize:] {
		if b != 0 {
			return Probe{}, false
		}
	}
	p := Probe{binary.BigEndian.Uint64(payload), binary.BigEndian.Uint16(payload[8:])}
	return p, int(p.Size) == len(payload)+PacketOverhead
}

// ReadProbeAck reads what was sealed in the answer to a probe.
func ReadProbeAck(payload []byte) (Probe, bool) {
	if len(payload) != probeSize {
		return Probe{}, false
	}
	return Probe{binary.BigEndian.Uint64(payload), binary.BigEndian.Uint16(payload[8:])}, true
}

// A Challenge is sent to an address that a peer seems to have moved to. Only
// the same bytes from there prove it.
type Challenge [16]byte

// ReadChallenge reads what was sealed in a challenge or its response.
func ReadChallenge(payload []byte) (c Challenge, ok bool) {
	if len(payload) != len(c) {
		return c, false
	}
	return Challenge(payload), true
}
