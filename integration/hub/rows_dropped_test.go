package hub_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
	"serve.zone/relay/integration/rig"
)

// bad is a packet that a member sends and the hub must drop.
type bad struct {
	what   string
	reason policy.Reason
	packet []byte
}

// address is an address that a test spells out.
func address(text string) netip.Addr { return netip.MustParseAddr(text) }

// badPackets are those of node 0 in a network where 0 may send to 1 and to 3, which is
// not connected, and not to 2.
func badPackets() []bad {
	own, granted, other := workload(0), workload(1), workload(2)
	to := func(to netip.Addr, change ...func([]byte)) []byte {
		return inner{from: own, to: to, length: 80, change: change}.bytes()
	}
	from := func(from netip.Addr, to netip.Addr, change ...func([]byte)) []byte {
		return inner{from: from, to: to, length: 80, change: change}.bytes()
	}
	first := func(b byte) func([]byte) { return func(p []byte) { p[0] = b } }
	long := func(by int) func([]byte) {
		return func(p []byte) { binary.BigEndian.PutUint16(p[atTotalLength:], uint16(len(p)+by)) }
	}
	return []bad{
		{"with another member's source", policy.SourceSpoofed, from(granted, other)},
		{"with the source of whom it is for", policy.SourceSpoofed, from(granted, granted)},
		{"with nobody's source", policy.SourceSpoofed, from(address("10.99.0.1"), granted)},
		{"with another member's control address", policy.SourceSpoofed, from(controlOf(1), granted)},
		{"with the hub's control address", policy.SourceSpoofed, from(hubControl, granted)},
		{"with a loopback source", policy.SourceSpoofed, from(address("127.0.0.1"), granted)},
		{"from no address", policy.SourceNotUnicast, from(address("0.0.0.0"), granted)},
		{"from everybody", policy.SourceNotUnicast, from(address("255.255.255.255"), granted)},
		{"from a group", policy.SourceNotUnicast, from(address("224.0.0.5"), granted)},

		{"to itself", policy.Hairpin, to(own)},
		{"to another address of its own", policy.Hairpin, to(address("10.91.0.77"))},
		{"to the hub, from a workload", policy.ControlDestination, to(hubControl)},
		{"to another member's control address", policy.ControlDestination, to(controlOf(1))},
		{"to its own control address", policy.ControlDestination, to(controlOf(0))},
		{"to an address of the control prefix that is nobody's", policy.ControlDestination, to(address("10.90.0.200"))},
		{"to the network of the control prefix", policy.ControlDestination, to(address("10.90.0.0"))},
		{"from its control address to a workload", policy.ControlSource, from(controlOf(0), granted)},
		{"from its control address to another one", policy.ControlSource, from(controlOf(0), controlOf(1))},
		{"from its control address to the hub, and no echo", policy.ControlProtocol, from(controlOf(0), hubControl)},
		{"an echo request to the hub in fragments", policy.ControlProtocol,
			inner{from: controlOf(0), to: hubControl, length: 84, change: []func([]byte){echoing, fragment(0, more)}}.bytes()},
		{"to a group", policy.DestinationMulticast, to(address("224.0.0.1"))},
		{"to the last group", policy.DestinationMulticast, to(address("239.255.255.255"))},
		{"to everybody", policy.DestinationBroadcast, to(address("255.255.255.255"))},
		{"to nobody", policy.DestinationUnknown, to(address("10.91.200.2"))},
		{"to the host itself", policy.DestinationUnknown, to(address("127.0.0.1"))},
		{"to no address", policy.DestinationUnknown, to(address("0.0.0.0"))},
		{"to the world", policy.DestinationUnknown, to(address("8.8.8.8"))},
		{"without a grant", policy.NoGrant, to(other)},
		{"a later fragment without a grant", policy.NoGrant, to(other, fragment(48, 0))},
		{"to a member that is not connected", policy.DestinationOffline, to(workload(3))},

		{"of IPv6", policy.PacketIPv6, to(granted, first(0x60))},
		{"with options", policy.PacketOptions, to(granted, first(0x46))},
		{"with a header of 16 bytes", policy.PacketHeaderLength, to(granted, first(0x44))},
		{"with a header longer than itself", policy.PacketHeaderLength,
			inner{from: own, to: granted, length: 56, change: []func([]byte){first(0x4f)}}.bytes()},
		{"shorter than it says", policy.PacketLength, to(granted, long(1))},
		{"longer than it says", policy.PacketLength, to(granted, long(-1))},
		{"that says it has no length", policy.PacketLength, to(granted, long(-80))},
		{"a fragment with nothing in it", policy.FragmentMalformed, to(granted, fragment(0, more))[:ipv4Header]},
		{"a fragment between two units", policy.FragmentMalformed,
			inner{from: own, to: granted, length: 81, change: []func([]byte){fragment(0, more)}}.bytes()},
		{"a fragment beyond the longest packet", policy.FragmentMalformed, to(granted, fragment(65_528, 0))},
		{"a first fragment of 40 bytes", policy.FragmentTiny,
			inner{from: own, to: granted, length: 60, change: []func([]byte){fragment(0, more)}}.bytes()},
		{"a fragment over the transport header", policy.FragmentOverlap, to(granted, fragment(8, 0))},
		{"a fragment at 40 bytes", policy.FragmentOverlap, inner{from: own, to: granted, length: 84, change: []func([]byte){fragment(40, more)}}.bytes()},
	}
}

// elsewhere are the reasons that other tests bring about, and those that no member can.
var elsewhere = map[policy.Reason]string{
	policy.SenderExpired:      "R65, where a packet is under way at that instant",
	policy.DestinationExpired: "R65",
	policy.SenderUnknown:      "the withdrawal of a member whose packet is under way",
	policy.EchoRate:           "TestR63_TheHubAnswersTenEchoRequestsASecond",
	policy.QueueFull:          "a member that never reads",
	policy.PathTooSmall:       "a path that shrinks below what QUIC needs: package hub",
	policy.CustodySuspended:   "the end of custody",
	policy.PacketShort:        "a datagram of less than 20 bytes holds no packet: it is counted as one",
	policy.PacketVersion:      "below: only a packet in two parts can begin so",
}

// R63: whatever a member sends that it may not is dropped for its own reason, which is
// counted, whole or in two parts, and nothing arrives anywhere.
func TestR63_WhatAMemberMayNotSendIsDroppedByName(t *testing.T) {
	c := start(t)
	for range 4 {
		c.admit()
	}
	c.grant([2]int{0, 1}, [2]int{0, 3}, [2]int{1, 0})
	c.push()
	a, b, other := c.dial(0), c.dial(1), c.dial(2)
	held := map[policy.Reason]bool{}
	cases, m := badPackets(), c.Metrics()
	for _, x := range cases {
		held[x.reason] = true
		fixLength(&x)
		m = c.wantDropped(m, x.what, x.reason, func() error { return a.send(x.packet) })
		m = c.wantDropped(m, x.what+", in two parts", x.reason, func() error { return a.sendParts(x.packet) })
	}
	version := inner{from: workload(0), to: workload(1), length: 80, change: []func([]byte){func(p []byte) { p[0] = 0x55 }}}.bytes()
	c.wantDropped(m, "of no version", policy.PacketVersion, func() error { return a.sendParts(version) })
	for r := range policy.Reasons {
		if _, ok := elsewhere[r]; ok == held[r] {
			t.Errorf("%s is held %v here, and elsewhere %v", r, held[r], ok)
		}
	}

	// The first that arrives is the first that may.
	late := inner{from: workload(0), to: workload(1), length: 1196, number: 1, change: []func([]byte){fragment(48, more)}}.bytes()
	last := inner{from: workload(0), to: workload(1), length: 1400, number: 2}.bytes()
	for _, packet := range [][]byte{late, last} {
		if err := a.send(packet); err != nil {
			t.Fatal(err)
		}
	}
	var came [][]byte
	c.Eventually("the packets that may pass", func() error {
		if came = append(came, b.take()...); len(came) < 2 {
			return fmt.Errorf("%d came", len(came))
		}
		return nil
	})
	if len(came) != 2 || !bytes.Equal(came[0], late) || !bytes.Equal(came[1], last) {
		t.Errorf("%d packets came, and not those that were granted", len(came))
	}
	if got := append(a.take(), other.take()...); len(got) != 0 {
		t.Errorf("%d packets came to whom none was granted", len(got))
	}
	if m := c.shownOf(0); m.Sessions != 1 || len(m.Dropped) != len(held)+1 || m.FromPackets != uint64(2*len(cases)+3) {
		t.Errorf("shown %+v", m)
	}
}

// fixLength makes the shortest case say how long it is: it was cut behind its header.
func fixLength(x *bad) {
	if len(x.packet) == ipv4Header {
		binary.BigEndian.PutUint16(x.packet[atTotalLength:], ipv4Header)
	}
}

// partOf is a datagram of docs/tunnel.md, section 7.
func partOf(number uint32, length, offset int, b []byte) []byte {
	d := []byte{0x01, byte(number >> 16), byte(number >> 8), byte(number)}
	d = binary.BigEndian.AppendUint16(d, uint16(length))
	d = binary.BigEndian.AppendUint16(d, uint16(offset))
	return append(d, b...)
}

// drops are the counts of dropped packets by reason, and the sum.
func drops(m rig.Metrics) (by map[policy.Reason]float64, sum float64) {
	by = map[policy.Reason]float64{}
	for r := range policy.Reasons {
		by[r], _ = m.Value("relay_hub_dropped_packets_total", "reason", r.String())
		sum += by[r]
	}
	return by, sum
}

// wantDropped wants one packet to be dropped, for this reason and no other.
// It is given the metrics as they were, and returns them as they are.
func (c *cluster) wantDropped(earlier rig.Metrics, what string, reason policy.Reason, send func() error) (now rig.Metrics) {
	c.t.Helper()
	before, sum := drops(earlier)
	if err := send(); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	c.Eventually("a packet "+what+" to be dropped", func() error {
		now = c.Metrics()
		if _, so := drops(now); so == sum {
			return fmt.Errorf("none is, so far")
		}
		return nil
	})
	after, _ := drops(now)
	for r := range after {
		want := before[r]
		if r == reason {
			want++
		}
		if after[r] != want {
			c.t.Errorf("a packet %s: %v more are dropped for %s", what, after[r]-before[r], r)
		}
	}
	const relayed = "relay_hub_relayed_packets_total"
	if was, is := earlier[relayed], now[relayed]; was != is {
		c.t.Errorf("a packet %s: %v were relayed", what, is-was)
	}
	return now
}

// R63, docs/tunnel.md section 7: a datagram that holds no packet is refused by name.
func TestR63_DatagramsThatHoldNoPacket(t *testing.T) {
	c := start(t)
	c.admit()
	c.admit()
	c.grant([2]int{0, 1})
	c.push()
	a, b := c.dial(0), c.dial(1)
	packet := inner{from: workload(0), to: workload(1), length: 100}.bytes()
	const number = 1000
	for _, x := range []struct {
		result    tunnel.JoinResult
		datagrams [][]byte
	}{
		{tunnel.JoinEmpty, [][]byte{{}}},
		{tunnel.JoinKind, [][]byte{append([]byte{0x02}, packet...)}},
		{tunnel.JoinKind, [][]byte{append([]byte{0xff}, packet...)}},
		{tunnel.JoinShort, [][]byte{packet[:19]}},
		{tunnel.JoinShort, [][]byte{packet[:1]}},
		{tunnel.JoinPartShort, [][]byte{partOf(number, 100, 0, nil)}},
		{tunnel.JoinPartLength, [][]byte{partOf(number, 19, 0, packet[:10])}},
		{tunnel.JoinPartLength, [][]byte{partOf(number, tunnel.DefaultInnerMTU+1, 0, packet)}},
		{tunnel.JoinPartEnd, [][]byte{partOf(number, 100, 0, packet)}},
		{tunnel.JoinPartEnd, [][]byte{partOf(number, 100, 50, packet[50:99])}},
		{tunnel.JoinPartDuplicate, [][]byte{partOf(number+1, 100, 0, packet[:50]), partOf(number+1, 100, 0, packet[:50])}},
		{tunnel.JoinPartConflict, [][]byte{partOf(number+2, 100, 0, packet[:50]), partOf(number+2, 101, 50, packet[49:])}},
		{tunnel.JoinPartOverlap, [][]byte{partOf(number+3, 100, 0, packet[:51]), partOf(number+3, 100, 50, packet[50:])}},
		{tunnel.JoinPartGap, [][]byte{partOf(number+4, 100, 0, packet[:49]), partOf(number+4, 100, 50, packet[50:])}},
		{tunnel.JoinPartOld, [][]byte{partOf(number+5+tunnel.JoinSlots, 100, 0, packet[:50]), partOf(number+5, 100, 0, packet[:50])}},
	} {
		earlier := c.Metrics()
		for _, d := range x.datagrams {
			if err := a.conn.SendDatagram(d); err != nil {
				t.Fatal(err)
			}
		}
		const metric = "relay_hub_received_datagrams_total"
		before, _ := earlier.Value(metric, "result", x.result.String())
		c.Eventually("a datagram that is "+x.result.String(), func() error {
			if now := c.counted(metric, "result", x.result.String()); now != before+1 {
				return fmt.Errorf("%v are, %v were before", now, before)
			}
			return nil
		})
	}
	if err := a.send(packet); err != nil {
		t.Fatal(err)
	}
	var came [][]byte
	c.Eventually("the packet that may pass", func() error {
		if came = append(came, b.take()...); len(came) == 0 {
			return fmt.Errorf("none came")
		}
		return nil
	})
	if len(came) != 1 || !bytes.Equal(came[0], packet) {
		t.Errorf("%d packets came", len(came))
	}
	if _, sum := drops(c.Metrics()); sum != 0 || !a.open() {
		t.Errorf("%v packets were dropped", sum)
	}
}

// R63, design §5.4: of a member's echo requests to the hub ten a second are answered.
func TestR63_TheHubAnswersTenEchoRequestsASecond(t *testing.T) {
	c := start(t)
	c.admit()
	c.push()
	a := c.dial(0)
	const asked = 40
	for n := range uint32(asked) {
		echo := inner{from: controlOf(0), to: hubControl, length: 64, change: []func([]byte){func(p []byte) {
			binary.BigEndian.PutUint32(p[ipv4Header+4:], n)
		}, echoing}}.bytes()
		if err := a.send(echo); err != nil {
			t.Fatal(err)
		}
	}
	var dropped, answered float64
	c.Eventually("all echo requests to be answered or dropped", func() error {
		m := c.Metrics()
		dropped, _ = m.Value("relay_hub_dropped_packets_total", "reason", policy.EchoRate.String())
		if answered = m["relay_hub_answered_echoes_total"]; dropped+answered != asked {
			return fmt.Errorf("%v are answered, %v dropped", answered, dropped)
		}
		return nil
	})
	if answered < 10 || dropped == 0 {
		t.Errorf("%v are answered, %v dropped", answered, dropped)
	}
	var came [][]byte
	c.Eventually("the answers", func() error {
		if came = append(came, a.take()...); len(came) != int(answered) {
			return fmt.Errorf("%d of %v came", len(came), answered)
		}
		return nil
	})
	for n, p := range came {
		source, to := netip.AddrFrom4([4]byte(p[atSource:])), netip.AddrFrom4([4]byte(p[atDestination:]))
		if source != hubControl || to != controlOf(0) || p[ipv4Header] != 0 || checksum(p[:ipv4Header]) != 0 || checksum(p[ipv4Header:]) != 0 {
			t.Errorf("answer %d is %s", n, strings.ToUpper(fmt.Sprintf("%x", p)))
		}
	}
}
