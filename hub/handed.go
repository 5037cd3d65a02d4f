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
// QUIC tells nobody what became of one. But when it has taken quicDepth more, it has
// taken it out of its queue; and when its writer has finished writerDepth more buffers
// from then on, it has written it.
type handed struct {
	added   uint64          // datagrams that QUIC has taken
	gone    uint64          // of them, those that it has written or dropped, from the first on
	last    [lookedBack]way // of the last ones, by number
	pending way             // of the packet that is being handed over

	// When marked datagrams had been added, QUIC's writer had finished so many buffers.
	marked, finished uint64
}

// mostParts is how many datagrams one packet takes at most.
const mostParts = 2

// took notes that QUIC took so many datagrams of the pending packet, which is over.
func (h *handed) took(datagrams int) {
	for range datagrams {
		h.last[h.added%lookedBack] = h.pending
		h.added++
	}
	h.pending = way{}
}

// wrote notes how many buffers QUIC's writer has finished, as it is read behind took.
// fence is the first datagram that is waited for, 0 for none: the mark is set where it says
// when that one is gone.
func (h *handed) wrote(finished, fence uint64) {
	switch enough := fence + quicDepth; {
	case finished-h.finished >= writerDepth:
		h.gone = h.marked - min(h.marked, quicDepth)
	case h.gone >= fence || h.marked >= enough || h.added < enough:
		return
	}
	h.marked, h.finished = h.added, finished
}

// fence returns the last datagram that must be gone before QUIC holds none that the table
// forbids, by its number; 0 where that is so already. Of those that are not gone and
// longer ago than is remembered any may be forbidden.
func (h *handed) fence(t *policy.Table, to policy.ID, now network.Instant) uint64 {
	if !h.pending.passes(t, to, now) {
		return h.added + mostParts
	}
	known := h.added - min(h.added, lookedBack)
	for n := h.added; n > max(h.gone, known); n-- {
		if !h.last[(n-1)%lookedBack].passes(t, to, now) {
			return n
		}
	}
	if known > h.gone {
		return known
	}
	return 0
}
