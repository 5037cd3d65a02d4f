package appliance

import (
	"math/rand/v2"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/simulate"
	"serve.zone/relay/typedsocket"
)

// off is how far the relay's wall clock is off, one after the other, where it steps.
var off = []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour, -24 * time.Hour}

// stepping is a wall clock of the relay's own. Cloudly and the nodes keep theirs.
func stepping(c change, own *clock) change {
	inner := c.relay
	c.relay = func(cfg *Config) { inner(cfg); cfg.Wall = own.now }
	return c
}

// B028: Cloudly comes and goes a thousand times, at random times and in every
// way, while nodes report and are told things. In the end all nodes are
// registered, nothing that was acknowledged is lost or was taken twice, and the
// relay holds no more than before. A wall clock that steps by hours and days
// meanwhile changes nothing of it.
func TestB028_AThousandFlaps(t *testing.T) {
	t.Run("steady clock", func(t *testing.T) { bubble(t, func(t *testing.T) { flapping(t, 400, false) }) })
	t.Run("stepping clock", func(t *testing.T) { bubble(t, func(t *testing.T) { flapping(t, 600, true) }) })
}

// flapping is one run of so many flaps, with or without steps of the relay's clock.
func flapping(t *testing.T, flaps int, steps bool) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	up, own := newLines(), &clock{}
	r := newRig(t, stepping(long(up), own))
	r.registered(0)
	f := r.fleet(3)
	time.Sleep(5 * time.Minute)
	before := f.weigh()
	began := time.Now()
	stopReports, stopPushes := f.reporting(random, 30*time.Second), f.pushing(random, 30*time.Second)
	for range flaps {
		f.flap(random)
		if steps {
			own.stepTo(off[random.IntN(len(off))])
		}
	}
	r.cloudly.ClearScript(contract.MethodRegisterClusterRelay)
	r.cloudly.ResumeReading()
	r.cloudly.Return()
	// A socket that was frozen, an attempt and a wait of the relay, a wait of a node.
	f.wantRegistered(silence + 15*time.Second + time.Minute + time.Minute + allBack)
	lasted := time.Since(began)
	stopPushes()
	stopReports()
	acked, taken := f.wantBooks(t)
	sequences := r.sequences()
	for i := 1; i < len(sequences); i++ {
		if sequences[i] <= sequences[i-1] {
			t.Fatalf("registration %d bears number %d after %d", i, sequences[i], sequences[i-1])
		}
	}
	if _, most := up.counts(); most > 1 {
		t.Errorf("%d connections to Cloudly at once", most)
	}
	f.wantPeace()
	t.Logf("%s: %d dials, %d registrations, %d dials of nodes, %d reports acknowledged, %d taken, others met %v",
		lasted.Round(time.Minute), len(up.dialled()), len(sequences), len(f.lines.dialled()), acked, taken, f.told)
	if len(sequences) < flaps/4 || acked < flaps/2 {
		t.Errorf("this run has shown little: %d registrations, %d reports", len(sequences), acked)
	}
	f.close()
	time.Sleep(5 * time.Minute) // every wait has a deadline
	wantFlat(t, before, f.weigh(), 1<<20)
}

// flap has Cloudly be gone in some way for some time, and back for some time.
func (f *fleet) flap(random *rand.Rand) {
	cloudly := f.r.cloudly
	kinds := []simulate.Reachability{
		simulate.Serving, simulate.Unreachable, simulate.Unavailable, simulate.Hanging, simulate.Dying, simulate.Mute,
	}
	cloudly.SetReachability(kinds[random.IntN(len(kinds))])
	switch random.IntN(8) {
	case 0, 1, 2, 3:
		cloudly.CutSockets()
	case 4:
		cloudly.CloseSockets(typedsocket.CloseRestart)
	case 5:
		cloudly.StopReading()
	case 6: // the answer to a registration is lost with its socket
		cloudly.Script(contract.MethodRegisterClusterRelay, simulate.CutOff())
		cloudly.CutSockets()
	case 7: // what stands goes on standing
	}
	pause := func(most time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(most)))) }
	pause(30 * time.Second)
	cloudly.SetReachability(simulate.Serving)
	// Short and long: some sessions die young, some stand for a minute.
	pause([]time.Duration{time.Second, 30 * time.Second, 2 * time.Minute}[random.IntN(3)])
}
