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
// of which kind that was.
func (m *echoMark) answers(packet []byte) (of echo, ok bool) {
	end := markAt + len(m)
	if packet[9] != icmp || len(packet) <= end || packet[icmpAt] != echoReply || echoMark(packet[markAt:end]) != *m {
		return 0, false
	}
	of = echo(packet[end])
	return of, of < echoes
}

// request makes an echo request of a kind, as large as the packet, in place.
func (m *echoMark) request(packet []byte, of echo, from, to [4]byte) {
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

// echo is a kind of echo request: as large as what goes whole one way, or small. Each end has
// found a size of its own, and what is larger goes in two parts: a packet of the one size
// comes whole in its direction alone.
type echo uint8

const (
	echoOut   echo = iota // as large as what goes whole to the hub
	echoIn                // as large as what comes whole from there
	echoSmall             // as every path carries
	echoes

	ways = echoSmall // that are checked
)

// checkApart is how far apart echo requests are: the hub admits ten of a member within any
// second, and what is lost together says little.
const checkApart = 80 * time.Millisecond

// checker sends the hub packets as large as each way is believed to carry, and has the
// connection moved when no answer comes any more, but to small ones (tunnel.PathCheck).
type checker struct {
	link *link
	told atomic.Uint64    // times that the hub said how much its datagrams hold
	came atomic.Uint64    // datagrams
	due  chan [echoes]int // echoes to ask for; has room for one

	checks [ways]tunnel.PathCheck // as what follows, of the goroutine that looks
	seen   uint64                 // packets and the like that had passed at the last look
}

func newChecker(l *link) *checker { return &checker{link: l, due: make(chan [echoes]int, 1)} }

// size is that of the largest packet that goes whole that way; 0 where that is the other
// way's size too, whose echoes check both.
func (k *checker) size(of echo) int {
	l := k.link
	mtu := int64(l.session.Answer().InnerMTU)
	out, in := min(mtu, l.limit.Load()), min(mtu, l.hubSize.Load())
	switch {
	case of == echoSmall:
		return tunnel.SafeDatagram
	case of == echoOut:
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
	seen := tunnel.PathSeen{
		Small: t.echoes[echoSmall].Load(), Datagrams: k.came.Load(), Packets: k.link.conn.ConnectionStats().PacketsReceived,
	}
	var due [echoes]int
	for of := range ways {
		seen.Full = t.echoes[of].Load()
		ask, narrower := k.checks[of].Look(now, k.size(of), active, seen)
		if narrower {
			k.link.mover.ask()
		}
		due[of] = ask.Full
		due[echoSmall] = max(due[echoSmall], ask.Small) // they serve both ways
	}
	if due == ([echoes]int{}) {
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
	l := k.link
	own := sender{lane: l.conn, limit: &l.limit, splitter: &l.splitter, traffic: new(traffic)}
	for {
		select {
		case due := <-k.due:
			if !k.send(&own, due) {
				return
			}
		case <-l.conn.Context().Done():
			return
		}
	}
}

// send sends echo requests, apart from each other and those of each kind in turn, so that
// what is lost for any other reason than its size is lost of all kinds alike. It returns
// false when the connection has ended.
func (k *checker) send(own *sender, due [echoes]int) (alive bool) {
	var room [tunnel.MaxInnerMTU]byte
	l := k.link
	answer := l.session.Answer()
	apart := time.NewTimer(checkApart)
	defer apart.Stop()
	for due != ([echoes]int{}) {
		for of := range echoes {
			if due[of] == 0 {
				continue
			}
			due[of]--
			packet := room[:max(k.size(of), leastEcho)]
			l.client.mark.request(packet, of, answer.ControlAddress.Addr().As4(), answer.HubAddress.As4())
			if !own.send(packet) {
				return false
			}
			if due == ([echoes]int{}) {
				return true
			}
			apart.Reset(checkApart)
			select {
			case <-apart.C:
			case <-l.conn.Context().Done():
				return false
			}
		}
	}
	return true
}
