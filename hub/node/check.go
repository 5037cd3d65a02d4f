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
)

// echoMark tells the answers to this client's own echo requests from those to requests of
// the machine. It is random, so that no other member can make one.
type echoMark [16]byte

func newEchoMark() (m echoMark) {
	rand.Read(m[:])
	return m
}

// answers reports whether a packet is the hub's answer to one of the client's requests.
func (m *echoMark) answers(packet []byte) bool {
	return packet[9] == icmp && len(packet) >= markAt+len(m) && packet[icmpAt] == echoReply &&
		echoMark(packet[markAt:markAt+len(m)]) == *m
}

// request makes an echo request of a size, in place.
func (m *echoMark) request(packet []byte, from, to [4]byte) {
	clear(packet)
	packet[0], packet[8], packet[9] = 0x45, echoTTL, icmp
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	copy(packet[12:], from[:])
	copy(packet[16:], to[:])
	binary.BigEndian.PutUint16(packet[10:], checksum(packet[:icmpAt]))
	packet[icmpAt] = echoRequest
	copy(packet[markAt:], m[:])
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

// checker sends the hub packets as large as the path is believed to carry, and has the
// connection moved when no answer comes any more (tunnel.PathCheck).
type checker struct {
	link *link
	told atomic.Uint64 // times that the hub said how much its datagrams hold
	due  chan int      // echoes to ask for; has room for one

	check tunnel.PathCheck // as what follows, of the goroutine that looks
	seen  uint64           // packets and the like that had passed at the last look
}

func newChecker(l *link) *checker { return &checker{link: l, due: make(chan int, 1)} }

// size is that of the largest packet that goes whole in either direction.
func (k *checker) size() int {
	l := k.link
	return int(min(int64(l.session.Answer().InnerMTU), max(l.limit.Load(), l.hubSize.Load())))
}

// look does what is due. It does not wait.
func (k *checker) look(now time.Time) {
	t := &k.link.client.traffic
	passed := t.outPackets.Load() + t.inPackets.Load() + k.told.Load()
	active := passed != k.seen
	k.seen = passed
	echoes, narrower := k.check.Look(now, k.size(), active, t.echoes.Load())
	if narrower {
		k.link.mover.ask()
	}
	if echoes > 0 {
		select {
		case k.due <- echoes:
		default: // QUIC takes none: those before wait still
		}
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
		case echoes := <-k.due:
			packet := room[:k.size()]
			l.client.mark.request(packet, answer.ControlAddress.Addr().As4(), answer.HubAddress.As4())
			for range echoes {
				if !own.send(packet) {
					return
				}
			}
		case <-l.conn.Context().Done():
			return
		}
	}
}
