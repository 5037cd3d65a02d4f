package netns_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"serve.zone/relay/integration/impair"
)

// seed is of no meaning.
const seed = 20170

// badPath loses, repeats, reorders, corrupts and delays, and is so narrow that full packets
// cross it in parts, to each of which that happens for itself.
var badPath = impair.Path{
	MaxDatagram: narrow - 28,
	Loss:        0.02, Duplication: 0.02, Corruption: 0.01,
	Reordering: 0.05, ReorderBy: 4 * time.Millisecond,
	Delay: 2 * time.Millisecond, Jitter: time.Millisecond,
}

// R62: TCP of two members' kernels crosses a path that does everything wrong, both ways, and
// the bytes are those that were sent. The tunnel stays.
func TestR62_TransferOverABadPath(t *testing.T) {
	if !apart(t) {
		return
	}
	proxy, err := impair.New(impair.Config{
		Upstream: hubAddress, Seed: seed, ToUpstream: badPath, ToClient: badPath,
		Listen: netip.AddrPortFrom(netip.IPv4Unspecified(), 0), From: hubAddress.Addr(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	c, a, b := pair(t, func(m *member) {
		direct(ethernet)(m)
		m.dials = netip.AddrPortFrom(netip.MustParseAddr("10.64.1.1"), proxy.Addr().Port())
	}, direct(ethernet))
	a.serve()
	b.serve()
	a.iperf(b, stream(1)...).carried()
	b.iperf(a, stream(1)...).carried()
	a.send(b, 256<<10)
	b.send(a, 256<<10)
	for _, d := range []impair.Direction{impair.ToUpstream, impair.ToClient} {
		n := proxy.Counts(d)
		t.Logf("%s: %v", d, n)
		if n.Dropped[impair.Lost] == 0 || n.Duplicated == 0 || n.Reordered == 0 || n.Corrupted == 0 {
			t.Errorf("%s: %v", d, n)
		}
	}
	c.sameSession()
}

// B127, B128: at random an eighth of what a member sends is lost. The tunnel stays, what
// arrives is what was not lost, and nobody takes the loss for a path that has become
// narrower.
func TestB127_B128_RandomLoss(t *testing.T) {
	if !apart(t) {
		return
	}
	c, a, b := pair(t, direct(ethernet), direct(ethernet))
	c.Eventually("datagrams that hold a whole packet", func() error {
		a.ping(b, 1, fullEcho)
		if s := a.session(); s.ToSize < innerMTU || s.FromSize < innerMTU {
			return fmt.Errorf("to it %d bytes, from it %d", s.ToSize, s.FromSize)
		}
		return nil
	})
	b.serve()
	const count = 750
	flow := a.iperf(b, datagrams(count)...)
	before, err := a.shown()
	if err != nil {
		t.Fatal(err)
	}
	c.Eventually("the flow", func() error { // iperf3 does not begin with lost packets
		now, err := a.shown()
		if err == nil && now.FromPackets < before.FromPackets+50 {
			err = fmt.Errorf("%d packets", now.FromPackets)
		}
		return err
	})
	c.home.nft(`table inet lossy {
		counter came {}
		counter lost {}
		chain input {
			type filter hook input priority 0
			iifname "` + a.hubEnd() + `" counter name came
			iifname "` + a.hubEnd() + `" numgen random mod 8 < 1 counter name lost drop
		}
	}`)
	packets, lost := flow.lost()
	came, dropped := c.home.counted("lossy", "came"), c.home.counted("lossy", "lost")
	t.Logf("%d of %d packets were dropped", dropped, came)
	if packets < count || lost > dropped || lost < dropped/2 {
		t.Errorf("%d of %d datagrams are lost, %d packets were dropped", lost, packets, dropped)
	}
	if s := a.session(); s.ToSize < innerMTU || s.FromSize < innerMTU {
		t.Errorf("afterwards datagrams to the member hold %d bytes, from it %d", s.ToSize, s.FromSize)
	}
	c.sameSession()
	c.nothingDropped()
	a.droppedNothing()
}
