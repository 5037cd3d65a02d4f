package hub_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// flow is packets that one peer sends another, until it is stopped.
type flow struct {
	sent atomic.Uint64
	stop func() // ends it, and returns when it has
}

// sends has a peer send packets, one after every pause, until its connection ends or the
// flow is stopped. Without a pause they follow each other as fast as QUIC takes them.
func (c *cluster) sends(p *peer, pause time.Duration, packet func(n uint32) []byte) *flow {
	f := &flow{}
	over := make(chan struct{})
	var once sync.Once
	var sending sync.WaitGroup
	sending.Go(func() {
		var tick <-chan time.Time
		if pause > 0 {
			ticker := time.NewTicker(pause)
			defer ticker.Stop()
			tick = ticker.C
		}
		for n := uint32(1); ; n++ {
			select {
			case <-over:
				return
			case <-p.conn.Context().Done():
				return
			default:
			}
			if tick != nil {
				select {
				case <-tick:
				case <-over:
					return
				}
			}
			if p.send(packet(n)) == nil {
				f.sent.Add(1)
			}
		}
	})
	f.stop = func() { once.Do(func() { close(over) }); sending.Wait() }
	c.t.Cleanup(func() { p.conn.CloseWithError(0, ""); f.stop() }) // QUIC may keep it waiting
	return f
}

// stamped makes packets from one node's workload to another's which bear the time that
// they were made at, in Unix milliseconds.
func stamped(from, to int) func(n uint32) []byte {
	return func(n uint32) []byte {
		return inner{from: workload(from), to: workload(to), number: n, length: 200, change: []func([]byte){func(p []byte) {
			binary.BigEndian.PutUint64(p[ipv4Header+4:], uint64(time.Now().UnixMilli()))
		}}}.bytes()
	}
}

// stampOf is when a stamped packet was made.
func stampOf(packet []byte) int64 { return int64(binary.BigEndian.Uint64(packet[ipv4Header+4:])) }

// tally counts the packets that came to a peer, by who sent them.
type tally struct {
	mu   sync.Mutex
	from map[int]int
	last map[int]int64 // the greatest stamp
}

func newTally() *tally { return &tally{from: map[int]int{}, last: map[int]int64{}} }

// got is for dialling.
func (x *tally) got(packet []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	from := int(packet[atSource+2])
	x.from[from]++
	x.last[from] = max(x.last[from], stampOf(packet))
}

// of returns how many came from a node, and the greatest stamp among them.
func (x *tally) of(from int) (count int, last int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.from[from], x.last[from]
}

// wantMore waits until so many more packets have come from a node.
func (c *cluster) wantMore(what string, x *tally, from, count int) {
	c.t.Helper()
	before, _ := x.of(from)
	c.Eventually(what, func() error {
		if now, _ := x.of(from); now < before+count {
			return fmt.Errorf("%d came, %d before", now, before)
		}
		return nil
	})
}
