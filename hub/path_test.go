package hub

import (
	"slices"
	"testing"
	"time"

	"serve.zone/relay/hub/policy"
)

// R63, B118: whatever source a member claims, only its own passes.
func TestR63_B118_ForeignSourcesAreDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 3, 0, 1, 1, 2, 2, 1))
		a, b, c := r.dial(0), r.dial(1), r.dial(2)
		a.send(packetOf(ip(1), ip(2), 100, 1)) // b's, which may
		a.send(packetOf("8.8.8.8", ip(1), 100, 2))
		a.send(packetOf(ip(0), ip(1), 100, 3))
		settle()
		if got := numbers(b.take()); !slices.Equal(got, []int{3}) || len(c.take()) != 0 {
			t.Errorf("b got %v", got)
		}
		want := []Dropped{{"source-spoofed", 2}}
		if m := r.member(0); !slices.Equal(m.Dropped, want) || r.drops(policy.SourceSpoofed) != 2 || m.FromPackets != 3 {
			t.Errorf("%+v", m)
		}
	})
}

// The hub answers its members' echo requests, ten a second, whatever connection they
// come over.
func TestTheHubAnswersEchoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2))
		a := r.dial(0)
		for range 12 {
			a.send(echoOf(control(0), "192.168.0.1"))
		}
		settle()
		got := a.take()
		if len(got) != policy.EchoRequestsPerSecond || got[0][20] != 0 || r.drops(policy.EchoRate) != 2 {
			t.Errorf("%d answers, %d dropped", len(got), r.drops(policy.EchoRate))
		}
		again := r.dial(0)
		again.send(echoOf(control(0), "192.168.0.1"))
		settle()
		if len(again.take()) != 0 {
			t.Error("a new connection has a budget of its own")
		}
		time.Sleep(time.Second)
		again.send(echoOf(control(0), "192.168.0.1"))
		settle()
		if len(again.take()) != 1 {
			t.Error("the next second has no budget")
		}
	})
}

// Packets of every size arrive as they were, whole or in two parts.
func TestPacketsOfEverySizeArrive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2, 0, 1))
		a, b := r.dial(0), r.dial(1)
		size := int(r.member(1).Session.ToSize)
		for _, length := range []int{20, 24, size - 1, size, size + 1, 1399, 1400} {
			p := packetOf(ip(0), ip(1), length, length)
			for i := 24; i < length; i++ {
				p[i] = byte(i * 7)
			}
			a.send(p)
			settle()
			if got := b.take(); len(got) != 1 || !slices.Equal(got[0], p) {
				t.Errorf("%d bytes: %d packets", length, len(got))
			}
		}
		a.send(packetOf(ip(0), ip(1), 1401, 1))
		a.conn.SendDatagram([]byte{0x77})
		settle()
		if got := len(b.take()); got != 0 || r.drops(policy.PathTooSmall) != 0 {
			t.Errorf("%d packets above the mtu arrived", got)
		}
		if r.member(1).Session.FromSize != 0 {
			t.Error("a size that nobody stated is shown")
		}
	})
}

// A member that reads nothing slows down nobody else, and costs what its queue may
// hold.
func TestAMemberThatReadsNothingHoldsNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 3, 0, 1, 0, 2))
		a, b, c := r.dial(0), r.dial(1), r.dial(2)
		deafen(r, c)
		for n := range 600 {
			a.send(packetOf(ip(0), ip(2), 1000, n))
			a.send(packetOf(ip(0), ip(1), 1000, n))
			if n%10 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		settle()
		if got := len(b.take()); got != 600 {
			t.Errorf("b got %d of 600 packets beside a member that reads nothing", got)
		}
		m := r.member(2)
		if m.Session.QueuedBytes > maxQueued || m.Session.QueuedBytes < maxQueued*9/10 {
			t.Errorf("%d bytes wait", m.Session.QueuedBytes)
		}
		if full := r.drops(policy.QueueFull); full == 0 || full != m.ToDropped || full != r.member(0).traffic(policy.QueueFull) {
			t.Errorf("%d dropped, %+v", full, m)
		}
	})
}

// traffic is how many packets of the member were dropped for a reason.
func (m Membership) traffic(why policy.Reason) uint64 {
	for _, d := range m.Dropped {
		if d.Reason == why.String() {
			return d.Packets
		}
	}
	return 0
}
