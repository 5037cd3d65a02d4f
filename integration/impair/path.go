package impair

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Direction is a way through a Proxy.
type Direction uint8

// The directions.
const (
	ToUpstream Direction = iota
	ToClient

	directions
)

// String returns the direction's name.
func (d Direction) String() string {
	if d == ToUpstream {
		return "to-upstream"
	}
	return "to-client"
}

// Path is what one direction does to datagrams. The zero value does nothing.
type Path struct {
	// Probabilities, each from 0 to 1 and drawn for itself.
	Loss        float64
	Duplication float64 // another copy follows, at once or up to ReorderBy later
	Reordering  float64 // it leaves ReorderBy later than it should, and those behind do not wait
	Corruption  float64 // one bit of it is inverted, copies included

	Delay     time.Duration // of each
	Jitter    time.Duration // that is added to Delay, at random below this; the order stays
	ReorderBy time.Duration // set where Reordering is

	// MaxDatagram is the longest UDP payload that passes, in bytes; 0 is no limit. A path
	// MTU of 1,280 is 1,252 over IPv4.
	MaxDatagram int

	// Rate is in bytes of UDP payload a second; 0 is no limit. Buffer is how many bytes
	// wait for it at most; 0 is 64 KiB.
	Rate, Buffer int
}

func (p Path) validate() error {
	for _, x := range []struct {
		name string
		rate float64
	}{{"loss", p.Loss}, {"duplication", p.Duplication}, {"reordering", p.Reordering}, {"corruption", p.Corruption}} {
		if !(x.rate >= 0 && x.rate <= 1) { // NaN is neither
			return fmt.Errorf("impair: %s of %v is no probability", x.name, x.rate)
		}
	}
	for _, x := range []struct {
		name string
		time time.Duration
	}{{"delay", p.Delay}, {"jitter", p.Jitter}, {"reordering", p.ReorderBy}} {
		if x.time < 0 || x.time > maxDelay {
			return fmt.Errorf("impair: %s of %v is not between 0 and %v", x.name, x.time, maxDelay)
		}
	}
	switch {
	case p.Reordering > 0 && p.ReorderBy == 0:
		return errors.New("impair: reordering by no time")
	case p.MaxDatagram < 0 || p.Rate < 0 || p.Buffer < 0:
		return errors.New("impair: a limit below 0")
	}
	return nil
}

// Decision is what becomes of one datagram.
type Decision struct {
	Lost bool

	Corrupted bool
	Bit       uint64 // which bit is inverted, modulo how many there are

	Delay time.Duration
	Held  bool // it leaves Path.ReorderBy later, and those behind do not wait

	Copied    bool
	CopyLater time.Duration // after the datagram itself
}

// Decide returns what becomes of the n-th datagram of a flow in a direction. It depends on
// nothing else.
func (p Path) Decide(seed uint64, d Direction, flow, n uint64) Decision {
	var key [32]byte
	for i, word := range []uint64{seed, uint64(d), flow, n} {
		binary.LittleEndian.PutUint64(key[8*i:], word)
	}
	r := rand.New(rand.NewChaCha8(key))
	// Each is drawn whatever the others say, and in this order for ever.
	lost, corrupted, bit := r.Float64(), r.Float64(), r.Uint64()
	jitter, held, copied, later := r.Float64(), r.Float64(), r.Float64(), r.Float64()
	return Decision{
		Lost:      lost < p.Loss,
		Corrupted: corrupted < p.Corruption,
		Bit:       bit,
		Delay:     p.Delay + fraction(p.Jitter, jitter),
		Held:      held < p.Reordering,
		Copied:    copied < p.Duplication,
		CopyLater: fraction(p.ReorderBy, later),
	}
}

func fraction(d time.Duration, x float64) time.Duration { return time.Duration(x * float64(d)) }

// invert inverts the decision's bit, if there is any.
func (x Decision) invert(b []byte) {
	if x.Corrupted && len(b) > 0 {
		bit := x.Bit % uint64(8*len(b))
		b[bit/8] ^= 1 << (bit % 8)
	}
}
