package hub

import (
	"runtime"
	"testing"
	"time"
)

// mostMemberMemory is what an idle member may take, its node's end included, which is
// here as well. The hub's end alone may take 128 KiB (design §5.5) and takes half of
// that, as BenchmarkHubNetworks in integration/bench tells; this is what a leak crosses,
// or a buffer more for each member.
const mostMemberMemory = 192 << 10

// settledHeap is what is live in the heap, and what stacks take.
func settledHeap() int64 {
	var m runtime.MemStats
	for range 3 { // pools are emptied by the second collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// An idle member takes little memory.
func TestAnIdleMemberTakesLittleMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const members = 64
		r := newRig(t)
		r.cloudly().must(netOf(1, members+1))
		r.dial(members) // what the first one makes is not its own
		time.Sleep(time.Minute)
		before := settledHeap()
		for i := range members {
			r.dial(i)
		}
		time.Sleep(time.Minute)
		if n := r.connected(); n != members+1 {
			t.Fatalf("%d members are connected", n)
		}
		each := (settledHeap() - before) / members
		if each > mostMemberMemory || each < 1<<10 {
			t.Errorf("a member takes %d bytes at both ends, want at most %d", each, mostMemberMemory)
		}
	})
}
