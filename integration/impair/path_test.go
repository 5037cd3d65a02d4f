package impair

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyPath draws a path with every impairment that is drawn for a datagram.
func anyPath(t *rapid.T) Path {
	rate := func(name string) float64 { return rapid.Float64Range(0, 1).Draw(t, name) }
	span := func(name string, least int64) time.Duration {
		return time.Duration(rapid.Int64Range(least, int64(time.Second)).Draw(t, name))
	}
	return Path{
		Loss: rate("loss"), Duplication: rate("duplication"), Reordering: rate("reordering"), Corruption: rate("corruption"),
		Delay: span("delay", 0), Jitter: span("jitter", 0), ReorderBy: span("reorder by", 1),
	}
}

// A decision depends on seed, direction, flow and number, and on each of them.
func TestTheSameSeedDecidesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPath(t)
		p.Jitter = time.Second
		seed, flow, n := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "flow"), rapid.Uint64().Draw(t, "n")
		d := p.Decide(seed, ToUpstream, flow, n)
		if again := p.Decide(seed, ToUpstream, flow, n); again != d {
			t.Fatalf("%+v, then %+v", d, again)
		}
		for name, other := range map[string]Decision{
			"seed": p.Decide(seed+1, ToUpstream, flow, n), "direction": p.Decide(seed, ToClient, flow, n),
			"flow": p.Decide(seed, ToUpstream, flow+1, n), "number": p.Decide(seed, ToUpstream, flow, n+1),
		} {
			if other.Bit == d.Bit {
				t.Fatalf("another %s decides the same", name)
			}
		}
	})
}

// A seed that was logged repeats its run for ever.
func TestWhatASeedMeansDoesNotChange(t *testing.T) {
	p := Path{Loss: 0.5, Duplication: 0.5, Reordering: 0.5, Corruption: 0.5, Delay: time.Second, Jitter: time.Second, ReorderBy: time.Second}
	var got strings.Builder
	for n := range uint64(4) {
		d := p.Decide(1, ToClient, 2, n)
		fmt.Fprintf(&got, "%v %v %v %v %x %v %v\n", d.Lost, d.Corrupted, d.Held, d.Copied, d.Bit,
			d.Delay.Round(time.Millisecond), d.CopyLater.Round(time.Millisecond))
	}
	const want = `false true false true 9e546efdf47d30e6 1.896s 863ms
true false true true b3480208d3f46d01 1.763s 16ms
true true true true a105fc8ccefff60 1.193s 378ms
true false false false a394ef0695de2b17 1.728s 623ms
`
	if got.String() != want {
		t.Errorf("got\n%s", got.String())
	}
}

// deviations is how far a count may be from its mean: six of a normal distribution are met
// once in 500 million, and three more stand in for it where the mean is next to nothing.
const deviations = 6

// met reports whether a count of so many draws fits a rate.
func met(got, draws int, rate float64) bool {
	mean := float64(draws) * rate
	return math.Abs(float64(got)-mean) <= deviations*math.Sqrt(mean*(1-rate))+3
}

// Each rate is met, and the draws of neighbours, flows and directions have nothing to do
// with each other.
func TestRatesAreMet(t *testing.T) {
	const draws = 4000
	rapid.Check(t, func(t *rapid.T) {
		p := anyPath(t)
		seed := rapid.Uint64().Draw(t, "seed")
		var lost, corrupted, held, copied, late int
		var withNext, withFlow, withBack, lostAndHeld int
		for n := range uint64(draws) {
			d := p.Decide(seed, ToUpstream, 0, n)
			lost += count(d.Lost)
			corrupted += count(d.Corrupted)
			held += count(d.Held)
			copied += count(d.Copied)
			late += count(d.Delay-p.Delay > p.Jitter/2)
			withNext += count(p.Decide(seed, ToUpstream, 2, 2*n).Lost && p.Decide(seed, ToUpstream, 2, 2*n+1).Lost)
			withFlow += count(d.Lost && p.Decide(seed, ToUpstream, 1, n).Lost)
			withBack += count(d.Lost && p.Decide(seed, ToClient, 0, n).Lost)
			lostAndHeld += count(d.Lost && d.Held)
			if d.Delay < p.Delay || d.Delay > p.Delay+p.Jitter || d.CopyLater < 0 || d.CopyLater > p.ReorderBy {
				t.Fatalf("%+v of %+v", d, p)
			}
		}
		for _, x := range []struct {
			name string
			got  int
			rate float64
		}{
			{"loss", lost, p.Loss}, {"corruption", corrupted, p.Corruption}, {"reordering", held, p.Reordering},
			{"duplication", copied, p.Duplication},
			{"loss of one and of the next", withNext, p.Loss * p.Loss},
			{"loss in two flows", withFlow, p.Loss * p.Loss}, {"loss in two directions", withBack, p.Loss * p.Loss},
			{"loss and reordering", lostAndHeld, p.Loss * p.Reordering},
		} {
			if !met(x.got, draws, x.rate) {
				t.Fatalf("%s: %d of %d, want a rate of %v", x.name, x.got, draws, x.rate)
			}
		}
		if p.Jitter > 1000 && !met(late, draws, 0.5) {
			t.Fatalf("%d of %d are delayed by more than half of the jitter", late, draws)
		}
	})
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Another rate of one impairment changes that one alone, and a higher one only adds to it.
func TestImpairmentsAreDrawnApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPath(t)
		more := p
		more.Loss = rapid.Float64Range(p.Loss, 1).Draw(t, "more loss")
		seed := rapid.Uint64().Draw(t, "seed")
		for n := range uint64(100) {
			d, m := p.Decide(seed, ToClient, 0, n), more.Decide(seed, ToClient, 0, n)
			if d.Lost && !m.Lost {
				t.Fatalf("datagram %d is lost at a rate of %v and not at %v", n, p.Loss, more.Loss)
			}
			if d.Lost = m.Lost; d != m {
				t.Fatalf("another loss changed %+v to %+v", d, m)
			}
		}
	})
}

// Exactly one bit is inverted, and each one can be.
func TestCorruptionInvertsOneBit(t *testing.T) {
	p := Path{Corruption: 1}
	bitsMet := map[int]bool{}
	for n := range uint64(1000) {
		b := make([]byte, 5)
		p.Decide(7, ToUpstream, 0, n).invert(b)
		ones := 0
		for i, c := range b {
			ones += bits.OnesCount8(c)
			if c != 0 {
				bitsMet[8*i+bits.TrailingZeros8(c)] = true
			}
		}
		if ones != 1 {
			t.Fatalf("%08b", b)
		}
	}
	if len(bitsMet) != 40 {
		t.Errorf("%d of 40 bits were met", len(bitsMet))
	}
	p.Decide(7, ToUpstream, 0, 0).invert(nil)
	b := []byte{0x55}
	if (Path{}).Decide(7, ToUpstream, 0, 0).invert(b); b[0] != 0x55 {
		t.Errorf("a path that does nothing inverted %x", b)
	}
}

func TestPathsThatAreNone(t *testing.T) {
	for _, p := range []Path{
		{Loss: -0.1}, {Duplication: 1.1}, {Reordering: math.NaN()}, {Corruption: 2}, {Reordering: 0.1},
		{Delay: -1}, {Jitter: maxDelay + 1}, {ReorderBy: maxDelay + 1}, {MaxDatagram: -1}, {Rate: -1}, {Buffer: -1},
	} {
		if p.validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
	if err := (Path{Loss: 1, Reordering: 1, ReorderBy: maxDelay, Delay: maxDelay}).validate(); err != nil {
		t.Error(err)
	}
}
