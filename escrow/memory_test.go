package escrow

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"serve.zone/relay/contract"
)

// heap returns the memory in use, after what can be freed has been.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// full returns the bodies of 256 runs of 32 records, as large as real ones are. The
// windows are tight, since 32 of the grid pass the horizon.
func full(t testing.TB) [][]byte {
	var windows []contract.DNSWindow
	for i := range contract.MaximumEscrowedRenewals {
		at := begin.Add(time.Duration(i) * 7 * time.Minute).UnixMilli()
		windows = append(windows, contract.DNSWindow{IssuedAt: at, NotBefore: at, ExpiresAt: at + slotWindow.Milliseconds()})
	}
	var bodies [][]byte
	for i := range maximumRuns {
		bodies = append(bodies, bodyOf(runOf(spec{node: fmt.Sprintf("node-%03d", i), change: func(_ int, s *contract.SignedDNSLeaseRenewal) {
			s.Authority = contract.Raw(`{"id":"signing-authority","publicKey":"` + strings.Repeat("k", 400) + `"}`)
		}}, windows)))
	}
	return bodies
}

// 256 full runs take what their records take and at most two fifths more, give it
// back when they are dropped, and an outage over all of them leaves nothing behind.
func TestMemoryOfFullRuns(t *testing.T) {
	bodies := full(t)
	now := begin
	e := New(Config{Wall: func() time.Time { return now }})
	e.SessionRegistered()
	for i := range maximumRuns {
		e.Bound(bindingOf(fmt.Sprintf("node-%03d", i), 1))
	}
	before := heap()
	for _, body := range bodies {
		if _, refused := e.hold(body); refused != nil {
			t.Fatal(refused)
		}
	}
	held := int64(e.Status().(Status).HeldBytes)
	grown := heap() - before
	t.Logf("%d runs of 32: records %d bytes, heap %d bytes", maximumRuns, held, grown)
	if held < 256*32*900 || grown > held+held*2/5 {
		t.Errorf("records of %d bytes take %d", held, grown)
	}
	// Held again and again, as every ten minutes.
	for range 3 {
		for _, body := range bodies {
			if _, refused := e.hold(body); refused != nil {
				t.Fatal(refused)
			}
		}
	}
	if again := heap() - before; again > grown+(256<<10) {
		t.Errorf("%d bytes after all runs were replaced, %d before", again, grown)
	}
	// An outage: every window, each acknowledged.
	e.machine.lost(e.now())
	for i := range 4 * 60 {
		at := instant{begin.Add(time.Duration(i) * time.Minute), time.Duration(i) * time.Minute}
		for _, p := range e.machine.tick(at) {
			e.machine.ended(at, p, outcomeAcknowledged)
		}
		e.machine.told = nil
	}
	if after := heap() - before; after > grown+(512<<10) {
		t.Errorf("%d bytes after an outage, %d before", after, grown)
	}
	e.DropCustody("relay-node-unknown")
	if left := heap() - before; left > 256<<10 {
		t.Errorf("%d bytes are left of what was dropped", left)
	}
	runtime.KeepAlive(bodies)
	runtime.KeepAlive(e)
}

// A record that was much longer on the way, in white space between its members, is
// not kept with what is around it.
func TestOnlyRecordsAreKept(t *testing.T) {
	x := grid(spec{}, begin, 2)
	body := strings.Replace(string(bodyOf(x)), `"renewals":`, strings.Repeat(" ", 1<<20)+`"renewals":`, 1)
	e := New(Config{Wall: func() time.Time { return begin }})
	e.SessionRegistered()
	e.Bound(bindingOf("node-a", 1))
	before := heap()
	if _, refused := e.hold([]byte(body)); refused != nil {
		t.Fatal(refused)
	}
	if grown := heap() - before; grown > 256<<10 {
		t.Errorf("%d bytes are kept of a hold of %d", grown, sizeOf(x))
	}
	runtime.KeepAlive(body)
	runtime.KeepAlive(e)
}

// Nodes that come and go leave a bounded record of what they acknowledged.
func TestNodesThatComeAndGo(t *testing.T) {
	m := newMachine(instant{wall: begin})
	for i := range maximumRecords + 100 {
		id := fmt.Sprintf("node-%d", i)
		at := instant{begin.Add(time.Duration(i) * time.Second), time.Duration(i) * time.Second}
		m.registered(at)
		m.bound(at, bindingOf(id, 1))
		m.hold(at, runOf(spec{node: id, unsealed: true}, windowsOf(at.wall, 1)), nil)
		m.lost(at)
		for _, p := range m.tick(at) {
			m.ended(at, p, outcomeAcknowledged)
		}
		m.registered(at)
		m.hold(at, runOf(spec{node: id}, nil), nil)
		m.unbound(at, id)
		m.told = nil
	}
	if n := len(m.nodes); n != maximumRecords {
		t.Errorf("%d nodes are remembered", n)
	}
	if m.nodes["node-0"] != nil || m.nodes[fmt.Sprintf("node-%d", maximumRecords+99)] == nil {
		t.Error("the wrong ones are remembered")
	}
	m.bound(m.at, bindingOf("node-x", 1))
	m.unbound(m.at, "node-x")
	if m.nodes["node-x"] != nil {
		t.Error("a node of which nothing is known is remembered")
	}
}

// BenchmarkHold is a hold of 23 renewals, which the reader of Cloudly's socket
// waits for.
func BenchmarkHold(b *testing.B) {
	body := bodyOf(grid(spec{}, begin, 23))
	e := New(Config{Wall: func() time.Time { return begin }})
	e.SessionRegistered()
	e.Bound(bindingOf("node-a", 1))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, refused := e.hold(body); refused != nil {
			b.Fatal(refused)
		}
	}
}

// BenchmarkTick is a look at 256 full runs that finds nothing due, which happens
// once a second while Cloudly is away.
func BenchmarkTick(b *testing.B) {
	e := New(Config{Wall: func() time.Time { return begin.Add(-time.Second) }})
	e.SessionRegistered()
	for i, body := range full(b) {
		e.Bound(bindingOf(fmt.Sprintf("node-%03d", i), 1))
		if _, refused := e.hold(body); refused != nil {
			b.Fatal(refused)
		}
	}
	at := e.now()
	e.machine.lost(at)
	b.ReportAllocs()
	for b.Loop() {
		if due := e.machine.tick(at); len(due) > 0 {
			b.Fatal("something is due")
		}
		e.machine.wake()
	}
}
