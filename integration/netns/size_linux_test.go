package netns_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	// narrow is the smallest MTU of a leg that the tunnel is made for.
	narrow = 1280

	// silentlyNarrow are the rules of a router that lets nothing longer pass, in either
	// direction, and does not say so.
	silentlyNarrow = `table inet narrow {
		counter toolong {}
		chain forward {
			type filter hook forward priority 0
			meta length > 1280 counter name toolong drop
		}
	}`
)

// B131, B133: one leg has an MTU of 1,280, at the member's own interface; the other is as
// narrow somewhere on the way, which nobody is told. Packets of 1,400 bytes cross both, in
// parts, and neither the hub nor a node nor ICMP has to do with their size.
func TestB131_B133_NarrowLegs(t *testing.T) {
	if !apart(t) {
		return
	}
	c, a, b := pair(t, direct(narrow), routed(silentlyNarrow))
	a.ping(b, 10, fullEcho)
	b.ping(a, 10, fullEcho)
	c.bothWays(a, b, 1<<20)

	for _, m := range []*member{a, b} {
		if s := m.session(); s.ToSize >= innerMTU || s.FromSize >= innerMTU {
			t.Errorf("datagrams to %s hold %d bytes, from it %d", m.name, s.ToSize, s.FromSize)
		}
	}
	if n := c.joined(); n < 600 {
		t.Errorf("the hub joined %v packets", n)
	}
	// Longer QUIC packets were tried on the leg that does not tell, and were lost.
	if n := b.router.counted("narrow", "toolong"); n == 0 {
		t.Error("nothing was too long for the narrow leg")
	}
	if n, _ := c.dropped("path-too-small"); n > 0 {
		t.Errorf("%v packets were dropped for their size", n)
	}
	for name, s := range map[string]*space{"the hub": c.home, a.name: a.space, b.name: b.space, "the router": b.router} {
		if told := s.unreachable(); told != "0 0" {
			t.Errorf("%s has had and sent by ICMP of what cannot be reached: %s", name, told)
		}
	}
	c.sameSession()
	a.droppedNothing(congested...)
	b.droppedNothing(congested...)
}

// whole are the rules of a member's namespace that count what comes from the hub in UDP
// datagrams which hold a packet of the inner MTU.
const whole = `table inet whole {
	counter came {}
	chain input {
		type filter hook input priority 0
		udp sport 4500 meta length > 1400 counter name came
	}
}`

// B131: over legs of 1,500 packets of the inner MTU travel whole, once QUIC knows the paths.
func TestB131_FullPacketsTravelWhole(t *testing.T) {
	if !apart(t) {
		return
	}
	c, a, b := pair(t, direct(ethernet), direct(ethernet))
	c.Eventually("datagrams that hold a whole packet", func() error {
		a.ping(b, 1, fullEcho)
		var unknown error
		for _, m := range []*member{a, b} {
			if s := m.session(); s.ToSize < innerMTU || s.FromSize < innerMTU {
				unknown = errors.Join(unknown, fmt.Errorf("to %s %d bytes, from it %d", m.name, s.ToSize, s.FromSize))
			}
		}
		return unknown
	})
	before := c.joined()
	a.space.nft(whole)
	b.space.nft(whole)
	a.serve()
	b.serve()
	there, back := a.iperf(b, datagrams(250)...), b.iperf(a, datagrams(250)...)
	there.allArrived(250)
	back.allArrived(250)
	a.ping(b, 10, fullEcho)
	if after := c.joined(); after != before {
		t.Errorf("the hub joined %v packets", after-before)
	}
	for _, m := range []*member{a, b} {
		if n := m.space.counted("whole", "came"); n < 260 {
			t.Errorf("%d whole packets came to %s, want 260", n, m.name)
		}
	}
	c.nothingDropped()
	a.droppedNothing()
	b.droppedNothing()
}

// congested are the reasons why a node drops packets of TCP, which sends more and more until
// that happens.
var congested = []string{"out-queue-full", "in-queue-full"}

// joined is how many packets came to the hub in parts.
func (c *cluster) joined() float64 {
	c.t.Helper()
	n, found := c.Metrics().Value("relay_hub_received_datagrams_total", "result", "joined")
	if !found {
		c.t.Fatal("the hub counts no joined packets")
	}
	return n
}

// dropped is how many packets the hub dropped for a reason.
func (c *cluster) dropped(reason string) (n float64, found bool) {
	return c.Metrics().Value("relay_hub_dropped_packets_total", "reason", reason)
}

// unreachable is how many messages of ICMP that something cannot be reached, which a packet
// too long for a link is one of, a namespace has received and sent.
func (s *space) unreachable() string {
	s.t.Helper()
	var names, values []string
	err := s.inside(func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp")
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "Icmp: "); ok {
				names, values = values, strings.Fields(rest)
			}
		}
		return err
	})
	if err != nil || len(names) != len(values) {
		s.t.Fatalf("read the counts of ICMP: %v, %v, %v", names, values, err)
	}
	told := map[string]string{}
	for i, name := range names {
		told[name] = values[i]
	}
	return told["InDestUnreachs"] + " " + told["OutDestUnreachs"]
}
