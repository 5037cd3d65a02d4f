package userspace_test

import (
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/hub/node/userspace"
)

// wired connects two stacks by a wire that loses packets of the first to the second, by
// their numbers.
func wired(t *testing.T, lost func(n int) bool) (a, b *userspace.Stack) {
	t.Helper()
	var ends [2]*userspace.Stack
	for i, at := range []string{"10.1.0.1", "10.2.0.1"} {
		end, err := userspace.New(netip.MustParseAddr(at))
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = end
	}
	carry := func(from, to *userspace.Stack, lost func(n int) bool) {
		bufs, sizes := make([][]byte, from.BatchSize()), make([]int, from.BatchSize())
		for i := range bufs {
			bufs[i] = make([]byte, 1500)
		}
		for count := 0; ; {
			n, err := from.Read(bufs, sizes, 0)
			if err != nil {
				return
			}
			for i := range n {
				if count++; !lost(count) {
					to.Write([][]byte{bufs[i][:sizes[i]]}, 0)
				}
			}
		}
	}
	var wire sync.WaitGroup
	wire.Go(func() { carry(ends[0], ends[1], lost) })
	wire.Go(func() { carry(ends[1], ends[0], func(int) bool { return false }) })
	t.Cleanup(func() { ends[0].Close(); ends[1].Close(); wire.Wait() })
	return ends[0], ends[1]
}

// B200: a transfer goes on after bursts of losses, as a queue makes that is full.
func TestB200_ATransferOutlivesBurstsOfLosses(t *testing.T) {
	for _, burst := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		t.Run(burst.String(), func(t *testing.T) {
			t.Parallel()
			const size, apart = 6 << 20, 1000 // bytes, packets
			var until time.Time
			a, b := wired(t, func(n int) bool {
				if n%apart == 0 {
					until = time.Now().Add(burst)
				}
				return time.Now().Before(until)
			})
			listener, err := b.Listen("tcp", "0.0.0.0:80")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			conn, err := a.DialContext(bounded(t), "tcp", "10.2.0.1:80")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			far, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			far.SetDeadline(time.Now().Add(testLimit))
			conn.SetDeadline(time.Now().Add(testLimit))
			var sent sync.WaitGroup
			sent.Go(func() {
				conn.Write(make([]byte, size))
				conn.(interface{ CloseWrite() error }).CloseWrite()
			})
			if n, err := io.Copy(io.Discard, far); n != size || err != nil {
				t.Errorf("%d of %d bytes came: %v", n, size, err)
			}
			sent.Wait()
		})
	}
}
