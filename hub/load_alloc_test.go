package hub

import (
	"runtime"
	"strings"
	"testing"

	"serve.zone/relay/hub/tunnel"
)

// oursAllocated is how many objects the hub's own code has allocated on the goroutines
// that read datagrams and send them, since profile 1 an object was turned on: those of
// quic-go and of anything it calls do not count, nor do those of this package's nodes.
func oursAllocated() (objects int64) {
	for range 3 { // the profile is that of the last collection but one
		runtime.GC()
	}
	records := make([]runtime.MemProfileRecord, 1<<16)
	n, ok := runtime.MemProfile(records, true)
	if !ok {
		panic("there are more places that allocate")
	}
	for _, r := range records[:n] {
		if ours(r.Stack()) {
			objects += r.AllocObjects
		}
	}
	return objects
}

// ours reports whether a stack is of the packet path and its allocation of our own code.
func ours(stack []uintptr) bool {
	const module, quic = "serve.zone/relay/", "github.com/quic-go/"
	frames := runtime.CallersFrames(stack)
	judged, own, onPath := false, false, false
	for {
		f, more := frames.Next()
		if !judged && (strings.HasPrefix(f.Function, module) || strings.HasPrefix(f.Function, quic)) {
			judged, own = true, strings.HasPrefix(f.Function, module)
		}
		switch f.Function {
		case module + "hub.(*Hub).read", module + "hub.(*session).send":
			onPath = true
		}
		if !more {
			return own && onPath
		}
	}
}

// Between QUIC's ReceiveDatagram and its SendDatagram nothing is allocated for a packet,
// real connections included. What TestPacketsAllocateNothing cannot see is here: the
// loops around its steps.
func TestTheLoopsAroundQUICAllocateNothing(t *testing.T) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2, 0, 1))
		a, b := r.dial(0), r.dial(1)
		carry := func(packets, size int) {
			t.Helper()
			for n := range packets {
				a.send(packetOf(ip(0), ip(1), size, n))
				if n%20 == 19 {
					settle()
				}
			}
			settle()
			if got := len(b.take()); got != packets {
				t.Fatalf("%d of %d packets of %d bytes arrived", got, packets, size)
			}
		}
		for _, test := range []struct {
			size int
			cut  bool    // into two datagrams, on both ways
			most float64 // a packet
		}{
			{1000, false, 0.05},
			// Parts that wait lie in memory that is given up when its second is over, and joined
			// packets in a pool, which drops one in four where races are looked for. Both come
			// to less than half an object a packet at the pace of this test.
			{1400, true, 0.6},
		} {
			const packets = 1000
			joined := r.metrics.datagrams.Of(tunnel.JoinJoined).Value()
			carry(100, test.size)
			before := oursAllocated()
			carry(packets, test.size)
			if each := float64(oursAllocated()-before) / packets; each > test.most {
				t.Errorf("packets of %d bytes: %.2f objects each", test.size, each)
			}
			if now := r.metrics.datagrams.Of(tunnel.JoinJoined).Value(); (now > joined) != test.cut {
				t.Errorf("packets of %d bytes: %d were joined", test.size, now-joined)
			}
		}
	})
}
