package hub

import (
	"encoding/binary"

	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/policy"
)

// way is what a relayed datagram that QUIC may still hold is judged by again. The
// zero value is of one that carries no member's packet.
type way struct {
	relayed     bool
	sender      policy.ID
	source      [4]byte
	destination [4]byte
}

// Of the IPv4 header (RFC 791 §3.1).
const (
	ipHeader      = 20
	ipSource      = 12
	ipDestination = 16
)

// wayOf returns the way of an entry, whose packet has been judged.
func wayOf(e *entry) way {
	if e.echo {
		return way{}
	}
	return way{
		relayed: true, sender: e.sender(),
		source:      [4]byte(e.packet[ipSource:ipDestination]),
		destination: [4]byte(e.packet[ipDestination:ipHeader]),
	}
}

// passes reports whether a table lets packets of that way pass to a member.
func (w *way) passes(t *policy.Table, to policy.ID, now network.Instant) bool {
	if !w.relayed {
		return true
	}
	// A whole packet without a payload, which stands for all with these addresses.
	packet := [ipHeader]byte{0: 0x45}
	binary.BigEndian.PutUint16(packet[2:], ipHeader)
	copy(packet[ipSource:], w.source[:])
	copy(packet[ipDestination:], w.destination[:])
	v := t.Judge(packet[:], w.sender, now)
	return v.Action == policy.Relay && v.To.ID == to
}

// handed remembers the last datagrams that were handed to QUIC on one connection.
// QUIC queues some and tells nobody when it has sent one; but when it has taken
// quicDepth more, it has.
type handed struct {
	added   uint64         // datagrams that QUIC has taken
	last    [quicDepth]way // of them, by number
	pending way            // of the packet that is being handed over
}

// mostParts is how many datagrams one packet takes at most.
const mostParts = 2

// took notes that QUIC took so many datagrams of the pending packet, which is over.
func (h *handed) took(datagrams int) {
	for range datagrams {
		h.last[h.added%quicDepth] = h.pending
		h.added++
	}
	h.pending = way{}
}

// fence returns how many datagrams QUIC must have taken before none is left in its
// queue that the table forbids. One that is reached already is no wait.
func (h *handed) fence(t *policy.Table, to policy.ID, now network.Instant) uint64 {
	if !h.pending.passes(t, to, now) {
		return h.added + mostParts + quicDepth
	}
	oldest := h.added - min(h.added, quicDepth)
	for n := h.added; n > oldest; n-- {
		if !h.last[(n-1)%quicDepth].passes(t, to, now) {
			return n + quicDepth
		}
	}
	return 0
}
