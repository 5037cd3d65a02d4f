package tunnel

import "time"

const (
	// quicOverhead is what quic-go takes off its packet to say what a datagram holds.
	quicOverhead = 37

	// SafeDatagram is what a datagram holds in a packet of PacketSize, which QUIC begins
	// with on every path: one that carries less carries no QUIC.
	SafeDatagram = PacketSize - quicOverhead
)

const (
	// checkFor is for how long after the last packet of a tunnel its path is checked at
	// every look: what the other end sends may all be lost.
	checkFor = 10 * time.Second

	// checkIdle is how often it is checked without packets.
	checkIdle = time.Minute

	// checkAgain is how many echoes are asked for at once when one has not come back.
	checkAgain = 3

	// checkMissed is how many in a row have to be missed, which takes three looks: at a
	// loss of one packet in eight, either way, that happens once in 29,000.
	checkMissed = 1 + 2*checkAgain
)

// A PathCheck finds out that a path has become narrower. QUIC searches for the largest
// packet that a path carries, but never notices that it carries less since: what is larger
// is lost from then on without a word. So packets of that size are sent where they come
// back from, and when none does any more, QUIC has to begin anew. The zero value is one of
// a tunnel that has just come up. It knows no clock, and belongs to one goroutine.
type PathCheck struct {
	missing  int // echoes that were asked for since the last one that came back
	answered uint64
	busy     time.Time // when there were packets last
	asked    time.Time // when an echo was asked for last
}

// Look is called about once a second. size is the largest datagram that either end sends,
// in bytes; active says that packets have passed since the last look, or the other end
// sends some; answered is how many echoes have come back since the tunnel is up.
//
// It returns how many echoes of that size to ask for now, and whether the path has become
// narrower, which it says again while nothing is done about it.
func (p *PathCheck) Look(now time.Time, size int, active bool, answered uint64) (echoes int, narrower bool) {
	if active || p.busy.IsZero() {
		p.busy = now
	}
	if answered != p.answered || size <= SafeDatagram {
		p.missing, p.answered = 0, answered
	}
	if size <= SafeDatagram {
		return 0, false
	}
	if p.missing >= checkMissed {
		p.missing, narrower = 1, true // so that it goes on
	}
	switch {
	case p.missing > 0:
		echoes = checkAgain
	case now.Sub(p.busy) <= checkFor, now.Sub(p.asked) >= checkIdle:
		echoes = 1
	default:
		return 0, narrower
	}
	p.missing += echoes
	p.asked = now
	return echoes, narrower
}
