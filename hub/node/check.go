package node

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
	"time"

	"serve.zone/relay/hub/tunnel"
)

// An echo request to the hub as this package sends it: IPv4 and ICMP (RFC 791, RFC 792), a
// mark, and zeros.
const (
	icmpAt      = 20
	markAt      = icmpAt + 8
	icmp        = 1
	echoRequest = 8
	echoReply   = 0
	echoTTL     = 64

	// leastEcho holds all of a request: its size may have changed since it was due.
	leastEcho = markAt + len(echoMark{}) + 1
)

// echoMark tells the answers to this client's own echo requests from those to requests of
// the machine. It is random, so that no other member can make one.
type echoMark [16]byte

func newEchoMark() (m echoMark) {
	rand.Read(m[:])
	return m
}

// answers reports whether a packet is the hub's answer to one of the client's requests, and
// for which way that was.
func (m *echoMark) answers(packet []byte) (of way, ok bool) {
	end := markAt + len(m)
	if packet[9] != icmp || len(packet) <= end || packet[icmpAt] != echoReply || echoMark(packet[markAt:end]) != *m {
		return 0, false
	}
	of = way(packet[end])
	return of, of < ways
}

// request makes an echo request for a way, as large as the packet, in place.
func (m *echoMark) request(packet []byte, of way, from, to [4]byte) {
	clear(packet)
	packet[0], packet[8], packet[9] = 0x45, echoTTL, icmp
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	copy(packet[12:], from[:])
	copy(packet[16:], to[:])
	binary.BigEndian.PutUint16(packet[10:], checksum(packet[:icmpAt]))
	packet[icmpAt] = echoRequest
	copy(packet[markAt:], m[:])
	packet[markAt+len(m)] = byte(of)
	binary.BigEndian.PutUint16(packet[icmpAt+2:], checksum(packet[icmpAt:]))
}

// checksum is that of the Internet (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// way is one direction of the path. Each end has found a size of its own, and what is
// larger goes in two parts: a packet of the one size comes whole in its direction alone.
type way uint8

const (
	wayOut way = iota // to the hub
	wayIn             // from the hub
	ways
)

// checker sends the hub packets as large as each way is believed to carry, and has the
// connection moved when no answer comes any more (tunnel.PathCheck).
type checker struct {
	link *link
	told atomic.Uint64  // times that the hub said how much its datagrams hold
	due  chan [ways]int // echoes to ask for; has room for one

	checks [ways]tunnel.PathCheck // as what follows, of the goroutine that looks
	seen   uint64                 // packets and the like that had passed at the last look
}

func newChecker(l *link) *checker { return &checker{link: l, due: make(chan [ways]int, 1)} }

// size is that of the largest packet that goes whole that way; 0 where that is the other
// way's size too, whose echoes check both.
func (k *checker) size(of way) int {
	l := k.link
	mtu := int64(l.session.Answer().InnerMTU)
	out, in := min(mtu, l.limit.Load()), min(mtu, l.hubSize.Load())
	switch {
	case of == wayOut:
		return int(out)
	case in == out:
		return 0
	}
	return int(in)
}

// look does what is due. It does not wait.
func (k *checker) look(now time.Time) {
	t := &k.link.client.traffic
	passed := t.outPackets.Load() + t.inPackets.Load() + k.told.Load()
	active := passed != k.seen
	k.seen = passed
	var due [ways]int
	for of := range ways {
		echoes, narrower := k.checks[of].Look(now, k.size(of), active, t.echoes[of].Load())
		if narrower {
			k.link.mover.ask()
		}
		due[of] = echoes
	}
	if due == ([ways]int{}) {
		return
	}
	select {
	case k.due <- due:
	default: // QUIC takes none: those before wait still
	}
}

// run sends what is due, until the connection ends. QUIC makes it wait while its queue is
// full, as it does everything that is sent.
func (k *checker) run() {
	var room [tunnel.MaxInnerMTU]byte
	l := k.link
	answer := l.session.Answer()
	own := sender{lane: l.conn, limit: &l.limit, splitter: &l.splitter, traffic: new(traffic)}
	for {
		select {
		case due := <-k.due:
			for of, echoes := range due {
				packet := room[:max(k.size(way(of)), leastEcho)]
				l.client.mark.request(packet, way(of), answer.ControlAddress.Addr().As4(), answer.HubAddress.As4())
				for range echoes {
					if !own.send(packet) {
						return
					}
				}
			}
		case <-l.conn.Context().Done():
			return
		}
	}
}
