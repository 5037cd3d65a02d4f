package hub_test

import (
	"testing"

	"serve.zone/relay/integration/impair"
)

// B136: over a path of 1,280 bytes, packets of the inner MTU of 1,400 and of every size
// below it all arrive, and a transfer is whole.
func TestB136_ASmallPathLosesNothingForItsSize(t *testing.T) {
	c := start(t)
	a, b := over(c, smallPath)
	for i, way := range [][2]*member{{a, b}, {b, a}} {
		if err := c.ofSize(way[0], way[1], 1-i, 28, 1400); err != nil {
			t.Fatalf("%s to %s: %v", name(i), name(1-i), err)
		}
		if err := c.transfer(way[0], way[1], 1-i, 2<<20); err != nil {
			t.Fatalf("%s to %s: the transfer: %v", name(i), name(1-i), err)
		}
	}
	if err := c.neverTooSmall(a, b); err != nil {
		t.Error(err)
	}
	for n, m := range []*member{a, b} {
		if s := m.client.Status(); s.Tunnels != 1 || s.Tunnel.DatagramOut > smallPath.MaxDatagram {
			t.Errorf("%s: %d tunnels, %+v", name(n), s.Tunnels, s.Tunnel)
		}
		// QUIC has looked for more, so the limit was there.
		for _, d := range []impair.Direction{impair.ToUpstream, impair.ToClient} {
			if m.way.Counts(d).Dropped[impair.TooLarge] == 0 {
				t.Errorf("%s, %v: nothing was too large: a wrong test", name(n), d)
			}
		}
	}
}

// B130: loss, duplication, reordering and corruption of a few datagrams in a hundred change
// no byte of a transfer, either way, and cost no tunnel.
func TestB130_ATransferOverABadPath(t *testing.T) {
	c := start(t)
	a, b := over(c, badPath)
	since := [2]shownMember{c.shows(0), c.shows(1)}
	for i, way := range [][2]*member{{a, b}, {b, a}} {
		if err := c.transfer(way[0], way[1], 1-i, 1<<20); err != nil {
			t.Fatalf("%s to %s: %v", name(i), name(1-i), err)
		}
	}
	for n, m := range []*member{a, b} {
		if err := c.sameSession(n, m, since[n].Session.Since); err != nil {
			t.Error(err)
		}
		for _, d := range []impair.Direction{impair.ToUpstream, impair.ToClient} {
			if x := m.way.Counts(d); x.Dropped[impair.Lost] == 0 || x.Duplicated == 0 || x.Reordered == 0 || x.Corrupted == 0 {
				t.Errorf("%s, %v: %v: a wrong test", name(n), d, x)
			}
		}
		// Nothing that was corrupted came out of QUIC.
		for _, what := range []string{"kind", "short", "long", "part-length", "part-conflict"} {
			if refused := m.client.Status().Traffic.Refused[what]; refused > 0 {
				t.Errorf("%s refused %d datagrams for %s", name(n), refused, what)
			}
		}
	}
}
