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

	// checkAgain is how many echoes of each size are asked for at a look when a full one has
	// not come back. With those of another way that is 9 a second, of 10 that a hub admits.
	checkAgain = 3

	// checkChance is how likely it may be at most that full echoes alone are missing by
	// chance. Where every small one comes back, four looks get there: with six of them
	// beside seven full ones it is one in 1,716. At random losses of up to 30 % one way a
	// tunnel is moved in error once in a day at most, at half once in an hour.
	checkChance = 1.0 / 300

	// checkChoked is at how many looks the other end may seem to send nothing but
	// acknowledgements. It adds next to nothing to those errors.
	checkChoked = 2
)

// Echoes are echo requests to send.
type Echoes struct {
	Full  int // as large as the way is believed to carry whole
	Small int // such as every path carries
}

// PathSeen is what has come over a tunnel since it is up.
type PathSeen struct {
	Full, Small uint64 // echoes of each kind
	Datagrams   uint64 // these and all others
	Packets     uint64 // of QUIC, whatever is in them
}

// A PathCheck finds out that a path has become narrower. QUIC searches for the largest
// packet that a path carries, but never notices that it carries less since: what is larger
// is lost from then on without a word. So packets of that size are sent where they come
// back from, and when none does any more, while small ones do, QUIC has to begin anew.
//
// Where small ones are missing as well, the way is overloaded, or is none, and another would
// be no better; with one exception. Where nearly all that the other end has to send is full
// and is lost, its QUIC sends hardly any more, and what is small waits behind: then no
// datagram comes at all, but acknowledgements do.
//
// The zero value is one of a tunnel that has just come up. It knows no clock, and belongs to
// one goroutine.
type PathCheck struct {
	busy time.Time // when there were packets last
	when time.Time // when an echo was asked for last

	// Since the last full echo that came back, or it was said that the path is narrower:
	asked  Echoes // for so many
	first  uint64 // how many small ones had come back before
	choked int    // looks at which no datagram had come
	silent bool   // at a look not even acknowledgements had

	last PathSeen // at the look before
	then Echoes   // asked for then
}

// Look is called about once a second. size is the largest datagram that either end sends,
// in bytes; active says that packets have passed since the last look, or the other end
// sends some.
//
// It returns the echoes to ask for now, and whether the path has become narrower, which it
// says again while nothing is done about it.
func (p *PathCheck) Look(now time.Time, size int, active bool, seen PathSeen) (ask Echoes, narrower bool) {
	if active || p.busy.IsZero() {
		p.busy = now
	}
	last := p.last
	p.last = seen
	if seen.Full != last.Full || size <= SafeDatagram {
		p.forget(seen)
	}
	if size <= SafeDatagram {
		return Echoes{}, false
	}
	if p.asked.Full > 0 {
		p.silent = p.silent || seen.Packets-last.Packets < uint64(p.then.Full)
	}
	if p.then.Full == checkAgain && seen.Datagrams == last.Datagrams {
		p.choked++
	}
	if p.chance(seen.Small) < checkChance || p.choked >= checkChoked && !p.silent {
		p.forget(seen)
		p.asked.Full, narrower = 1, true // so that it goes on
	}
	p.then = Echoes{}
	switch {
	case p.asked.Full > 0:
		p.then = Echoes{checkAgain, checkAgain}
	case now.Sub(p.busy) <= checkFor, now.Sub(p.when) >= checkIdle:
		p.then.Full = 1
		p.first = seen.Small
	default:
		return Echoes{}, false
	}
	p.asked.Full += p.then.Full
	p.asked.Small += p.then.Small
	p.when = now
	return p.then, narrower
}

// forget begins to count anew.
func (p *PathCheck) forget(seen PathSeen) {
	p.asked, p.then, p.first = Echoes{}, Echoes{}, seen.Small
	p.choked, p.silent = 0, false
}

// chance is how likely it is that of the echoes that were asked for, those that came back
// are small ones alone, if what is lost is lost whatever its size (Fisher's exact test).
func (p *PathCheck) chance(small uint64) float64 {
	of := 1.0
	for n := range min(p.asked.Small, int(small-p.first)) {
		of *= float64(p.asked.Small-n) / float64(p.asked.Full+p.asked.Small-n)
	}
	return of
}
