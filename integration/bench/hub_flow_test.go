package bench

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The flows through the hub or the bare relay, and how they are measured.
const (
	// growing is the number of a packet that belongs to no run.
	growing = 1<<32 - 1
	// numberAt is where a packet bears its number in its flow, behind its IPv4 header.
	numberAt = 20
	// askEvery is after how many packets a sender asks whether its run is over.
	askEvery = 32
	// stalled is how long a closed loop waits for a packet until it takes all that are
	// under way for lost.
	stalled = 100 * time.Millisecond
	// drainWait is what is given at most to what is under way when a run ends.
	drainWait = 100 * time.Millisecond
	drainLook = 2 * time.Millisecond
)

// flow is packets from one end to another through a relay, which keeps their order.
type flow struct {
	from, to *end
	packet   []byte // the next one
	window   int64  // packets under way at most; 0 for an open loop

	sent    int64        // of the sender
	behind  atomic.Int64 // the number behind the newest that arrived or was given up
	arrived atomic.Int64
	waiting atomic.Bool
	grown   atomic.Bool // a packet came that was sent to find out what the path carries
	wake    chan struct{}
}

func newFlow(from, to *end, packet []byte) *flow {
	f := &flow{from: from, to: to, packet: packet, wake: make(chan struct{}, 1)}
	take := f.took
	to.take.Store(&take)
	return f
}

// took counts a packet that arrived. What was lost before it is under way no more.
func (f *flow) took(packet []byte) {
	if len(packet) != len(f.packet) {
		return // not of a flow
	}
	number := binary.BigEndian.Uint32(packet[numberAt:])
	if number == growing {
		f.grown.Store(true)
		return
	}
	f.arrived.Add(1)
	f.behind.Store(int64(number) + 1)
	if f.waiting.Load() {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

// run sends until it is over, which is asked now and then.
func (f *flow) run(over func() bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for n := 0; ; n++ {
		if n%askEvery == 0 && over() {
			return
		}
		if f.window > 0 && f.sent-f.behind.Load() >= f.window {
			f.await(timer)
		}
		binary.BigEndian.PutUint32(f.packet[numberAt:], uint32(f.sent))
		f.sent++
		if f.from.conn.SendDatagram(f.packet) != nil {
			return
		}
	}
}

// await waits until half of the window is free.
func (f *flow) await(timer *time.Timer) {
	for f.sent-f.behind.Load() > max(0, f.window/2) {
		f.waiting.Store(true)
		if f.sent-f.behind.Load() <= f.window/2 {
			break
		}
		timer.Reset(stalled)
		select {
		case <-f.wake:
		case <-timer.C:
			f.behind.Store(f.sent)
		}
	}
	f.waiting.Store(false)
}

// carried is what runs have shown, added up.
type carried struct {
	arrived, lost int64
	took, cpu     time.Duration // of the relay
}

func (c carried) plus(d carried) carried {
	return carried{c.arrived + d.arrived, c.lost + d.lost, c.took + d.took, c.cpu + d.cpu}
}

// rate is how many packets arrived in a second.
func (c carried) rate() float64 { return float64(c.arrived) / c.took.Seconds() }

// each is the CPU of the relay for each packet that arrived, in ns.
func (c carried) each() float64 { return float64(c.cpu) / float64(c.arrived) }

// lostShare is the share of the packets sent that did not arrive, in percent.
func (c carried) lostShare() float64 {
	return 100 * float64(c.lost) / float64(c.lost+c.arrived)
}

// lane is one relay with its flows.
type lane struct {
	pid     int
	mallocs func() uint64 // of the relay so far
	flows   []*flow
}

// run drives all flows for a time, each with a window or, for 0, as fast as it can.
func (l *lane) run(b *testing.B, span time.Duration, window int) (c carried) {
	b.Helper()
	cpu, begin := cpuOf(b, l.pid), time.Now()
	end := begin.Add(span)
	l.begin(window, func() bool { return time.Now().After(end) })()
	c.took, c.arrived, c.cpu = time.Since(begin), l.arrived(), cpuOf(b, l.pid)-cpu
	if c.arrived == 0 {
		b.Fatal("nothing arrived")
	}
	c.lost = l.drained()
	return c
}

// begin lets all flows send until it is over, and returns what waits for that.
func (l *lane) begin(window int, over func() bool) (wait func()) {
	var running sync.WaitGroup
	for _, f := range l.flows {
		f.window, f.sent = int64(window), 0
		f.arrived.Store(0)
		f.behind.Store(0)
		running.Go(func() { f.run(over) })
	}
	return running.Wait
}

// drained returns how many packets of the last run have not arrived, after a while.
func (l *lane) drained() (lost int64) {
	var sent int64
	for _, f := range l.flows {
		sent += f.sent
	}
	for end := time.Now().Add(drainWait); l.arrived() < sent && time.Now().Before(end); {
		time.Sleep(drainLook)
	}
	return sent - l.arrived()
}

// allocations is how many objects the relay allocates for a packet in a run of some
// length. What asking it allocates is left out.
func (l *lane) allocations(b *testing.B, span time.Duration, window int) float64 {
	first := l.mallocs()
	before := l.mallocs()
	c := l.run(b, span, window)
	return (float64(l.mallocs()-before) - float64(before-first)) / float64(c.arrived)
}

// arrived is how many packets of this run have arrived.
func (l *lane) arrived() (n int64) {
	for _, f := range l.flows {
		n += f.arrived.Load()
	}
	return n
}
