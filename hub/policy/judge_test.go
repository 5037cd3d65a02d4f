package policy

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
	"serve.zone/relay/hub/network/networktest"
)

// want judges a packet and compares what is said of it.
func want(t *testing.T, name string, table *Table, from ID, now network.Instant, p []byte, what string) {
	t.Helper()
	if got := said(table.Judge(p, from, now)); got != what {
		t.Errorf("%s: %s, want %s", name, got, what)
	}
}

// R62: a packet passes from the source's domain to the destination's in the direction
// of the grant, and in no other; the answer passes once its own grant is there.
func TestR62_DirectedGrants(t *testing.T) {
	table := compile(t, nil, granted())
	a, b := idOf(t, table, "node-000"), idOf(t, table, "node-001")
	c := idOf(t, table, "node-002")
	forth, back := packet("10.0.0.1", "10.1.0.255"), packet("10.1.0.255", "10.0.0.1")
	want(t, "granted", table, a, admitted, forth, "relay to node-001")
	want(t, "its answer", table, b, admitted, back, "drop no-grant")
	want(t, "another domain of the source", table, a, admitted, packet("10.0.1.1", "10.1.0.255"), "drop no-grant")
	want(t, "another domain of the destination", table, a, admitted, packet("10.0.0.1", "10.1.1.1"), "drop no-grant")
	want(t, "a third node", table, a, admitted, packet("10.0.0.1", "10.2.0.1"), "drop no-grant")
	want(t, "granted to another", table, b, admitted, packet("10.1.0.1", "10.2.0.1"), "relay to node-002")
	want(t, "from a third node", table, c, admitted, packet("10.2.0.1", "10.1.0.1"), "drop no-grant")
	want(t, "within one node", table, a, admitted, packet("10.0.0.1", "10.0.1.1"), "drop hairpin")
	want(t, "to itself", table, a, admitted, packet("10.0.0.1", "10.0.0.1"), "drop hairpin")
	want(t, "out of the cluster", table, a, admitted, packet("10.0.0.1", "1.1.1.1"), "drop destination-unknown")
	want(t, "just beyond the last prefix", table, a, admitted, packet("10.0.0.1", "10.1.2.0"), "drop destination-unknown")

	x := networktest.Grant(granted(), "d1.0", "d0.0")
	x.Revision++
	next := compile(t, table, x)
	want(t, "its answer, granted now", next, b, admitted, back, "relay to node-000")
	want(t, "granted as before", next, a, admitted, forth, "relay to node-001")
}

// B095: without grants nothing passes, and neither does anything without nodes or
// without a network.
func TestB095_WithoutGrantsNothingPasses(t *testing.T) {
	x := granted()
	x.Grants = []contract.VPNGrant{}
	table := compile(t, nil, x)
	for m := range table.Members() {
		for other := range table.Members() {
			from, to := "10."+m.NodeID[7:]+".0.1", "10."+other.NodeID[7:]+".0.1"
			if v := table.Judge(packet(from, to), m.ID, admitted); v.Action != Drop {
				t.Errorf("%s to %s: %s", from, to, said(v))
			}
		}
	}
	a := idOf(t, table, "node-000")
	for name, table := range map[string]*Table{
		"no nodes": compile(t, table, networktest.Grid(0, 0)), "no network": Empty(table), "the first table": Empty(nil),
	} {
		want(t, name, table, a, admitted, packet("10.0.0.1", "10.1.0.1"), "drop sender-unknown")
		want(t, name+", no membership", table, ID{}, admitted, packet("10.0.0.1", "10.1.0.1"), "drop sender-unknown")
		want(t, name+", nothing", table, ID{}, admitted, nil, "drop sender-unknown")
	}
}

// R63: a source that is another node's, the hub's, nobody's or not unicast is dropped,
// each with the reason for it.
func TestR63_SpoofedSources(t *testing.T) {
	table := compile(t, nil, granted())
	a := idOf(t, table, "node-000")
	for name, source := range map[string]string{
		"of another node":                    "10.1.0.1",
		"granted the same way":               "10.1.0.1",
		"just before the first prefix":       "9.255.255.255",
		"just behind the last prefix":        "10.0.2.0",
		"of nobody":                          "1.1.1.1",
		"control address of another":         "192.168.0.3",
		"the hub's":                          "192.168.0.1",
		"network address of the prefix":      "192.168.0.0",
		"broadcast address of the prefix":    "192.168.3.255",
		"control address of nobody":          "192.168.2.2",
		"loopback":                           "127.0.0.1",
		"link-local":                         "169.254.0.1",
		"of the class that is not assigned":  "240.0.0.1",
		"the broadcast address of one below": "255.255.255.254",
	} {
		want(t, name, table, a, admitted, packet(source, "10.1.0.1"), "drop source-spoofed")
	}
	for _, source := range []string{"224.0.0.1", "239.255.255.255", "255.255.255.255", "0.0.0.0"} {
		want(t, source, table, a, admitted, packet(source, "10.1.0.1"), "drop source-not-unicast")
	}
}

// A prefix may cover addresses that no host has. They send nothing and are sent
// nothing.
func TestOddPrefixes(t *testing.T) {
	x := networktest.Grant(granted(), "d1.1", "d0.1")
	x.Nodes[0].WorkloadPrefixes = []contract.VPNWorkload{
		{CIDR: "0.0.0.0/5", PolicyDomain: "d0.0"}, {CIDR: "224.0.0.0/3", PolicyDomain: "d0.1"},
	}
	table := compile(t, nil, x)
	a, b := idOf(t, table, "node-000"), idOf(t, table, "node-001")
	want(t, "a host's", table, a, admitted, packet("1.1.1.1", "10.1.0.1"), "relay to node-001")
	for _, source := range []string{"224.0.0.1", "255.255.255.255", "0.0.0.0"} {
		want(t, "from "+source, table, a, admitted, packet(source, "10.1.0.1"), "drop source-not-unicast")
	}
	want(t, "to a host", table, b, admitted, packet("10.1.1.1", "241.1.1.1"), "relay to node-000")
	want(t, "to many", table, b, admitted, packet("10.1.1.1", "224.0.0.251"), "drop destination-multicast")
	want(t, "to all", table, b, admitted, packet("10.1.1.1", "255.255.255.255"), "drop destination-broadcast")
}

// B118: of 65,536 sources exactly those in the sender's own prefixes pass.
func TestB118_OnlyOwnSourcesPass(t *testing.T) {
	table := compile(t, nil, granted())
	a := idOf(t, table, "node-000")
	own := netip.MustParsePrefix("10.0.0.0/23") // both prefixes
	for i := range 1 << 16 {
		source := netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), byte(i * 7 >> 4), byte(i * 13)})
		if i%4 == 0 {
			source = netip.AddrFrom4([4]byte{10, byte(i >> 8 & 3), byte(i >> 2 & 7), byte(i)})
		}
		v := table.Judge(packet(source.String(), "10.1.0.1"), a, admitted)
		if passed := v.Action != Drop || v.Reason == NoGrant; passed != own.Contains(source) {
			t.Fatalf("%s: %s", source, said(v))
		}
	}
}

// B119: the table finds out itself whether the sender is a member, and which one: an
// older, a newer and a free membership are unknown.
func TestB119_NothingIsTakenOnTrust(t *testing.T) {
	table := compile(t, nil, granted())
	a, b := idOf(t, table, "node-000"), idOf(t, table, "node-001")
	good := packet("10.0.0.1", "10.1.0.1")
	want(t, "its own", table, a, admitted, good, "relay to node-001")
	want(t, "of another member", table, b, admitted, good, "drop source-spoofed")
	want(t, "of no membership", table, ID{}, admitted, good, "drop sender-unknown")
	want(t, "of an older membership in that place", table, ID{slot: a.slot, since: a.since - 1}, admitted, good, "drop sender-unknown")
	want(t, "of a newer one", table, ID{slot: a.slot, since: a.since + 1}, admitted, good, "drop sender-unknown")
	want(t, "of a free place", table, ID{slot: 200, since: a.since}, admitted, good, "drop sender-unknown")
	want(t, "of no place", table, ID{slot: Slots, since: a.since}, admitted, good, "drop sender-unknown")
}

// B196: whoever is relayed a packet and sends it back as it is, to the hub that sends
// it on, is dropped at once.
func TestB196_NoPacketPassesTwice(t *testing.T) {
	x := networktest.Grant(granted(), "d1.0", "d0.0", "d2.0", "d0.0", "d2.0", "d1.0", "d0.0", "d2.0")
	table := compile(t, nil, x)
	p := packet("10.0.0.1", "10.1.0.1")
	v := table.Judge(p, idOf(t, table, "node-000"), admitted)
	if v.Action != Relay {
		t.Fatal(said(v))
	}
	want(t, "sent back", table, v.To.ID, admitted, p, "drop source-spoofed")
	want(t, "sent on by a third", table, idOf(t, table, "node-002"), admitted, p, "drop source-spoofed")
}

func TestControlAddresses(t *testing.T) {
	table := compile(t, nil, granted())
	a := idOf(t, table, "node-000")
	const own, hub, other = "192.168.0.2", "192.168.0.1", "192.168.0.3"
	reply := func(p []byte) { echo(p); p[icmpTypeAt] = icmpEchoReply }
	code := func(p []byte) { echo(p); p[icmpCodeAt] = 1 }
	first := func(p []byte) { echo(p); fragment(0, true)(p) }
	for name, tc := range map[string]struct {
		packet []byte
		want   string
	}{
		"echo request to the hub":           {packet(own, hub, echo), "echo"},
		"shortest echo request":             {sized(packet(own, hub, echo), 28), "echo"},
		"cut echo request":                  {sized(packet(own, hub, echo), 27), "drop control-protocol"},
		"header alone":                      {sized(packet(own, hub, echo), 20), "drop control-protocol"},
		"echo reply":                        {packet(own, hub, reply), "drop control-protocol"},
		"code 1":                            {packet(own, hub, code), "drop control-protocol"},
		"udp":                               {packet(own, hub, at(icmpTypeAt, icmpEchoRequest)), "drop control-protocol"},
		"first fragment":                    {sized(packet(own, hub, first), 20+48), "drop control-protocol"},
		"last fragment":                     {packet(own, hub, echo, fragment(800, false)), "drop control-protocol"},
		"to another member":                 {packet(own, other, echo), "drop control-source"},
		"to itself":                         {packet(own, own, echo), "drop control-source"},
		"to the network":                    {packet(own, "192.168.0.0", echo), "drop control-source"},
		"to all of it":                      {packet(own, "192.168.3.255", echo), "drop control-source"},
		"to a workload":                     {packet(own, "10.1.0.1", echo), "drop control-source"},
		"to its own workload":               {packet(own, "10.0.0.1", echo), "drop control-source"},
		"to nobody":                         {packet(own, "1.1.1.1", echo), "drop control-source"},
		"to many":                           {packet(own, "224.0.0.1", echo), "drop control-source"},
		"workload to the hub":               {packet("10.0.0.1", hub, echo), "drop control-destination"},
		"workload to another member":        {packet("10.0.0.1", other), "drop control-destination"},
		"workload to its own member":        {packet("10.0.0.1", own), "drop control-destination"},
		"workload to nobody of the prefix":  {packet("10.0.0.1", "192.168.2.2"), "drop control-destination"},
		"workload to all of the prefix":     {packet("10.0.0.1", "192.168.3.255"), "drop control-destination"},
		"workload just behind the prefix":   {packet("10.0.0.1", "192.168.4.0"), "drop destination-unknown"},
		"control address of another member": {packet(other, hub, echo), "drop source-spoofed"},
		"to many, from a workload":          {packet("10.0.0.1", "224.0.0.1"), "drop destination-multicast"},
		"to all, from a workload":           {packet("10.0.0.1", "255.255.255.255"), "drop destination-broadcast"},
	} {
		want(t, name, table, a, admitted, tc.packet, tc.want)
	}
}

// R65: from the end of the sender's or the destination's membership on nothing passes
// between them, to the millisecond, whichever clock was set; others go on.
func TestR65_ExpiryOfEitherEnd(t *testing.T) {
	x := granted()
	x.Nodes[0].ExpiresAt = networktest.Admitted + 1000
	x.Nodes[1].ExpiresAt = networktest.Admitted + 2000
	table := compile(t, nil, x)
	a, b := idOf(t, table, "node-000"), idOf(t, table, "node-001")
	forth, on := packet("10.0.0.1", "10.1.0.1"), packet("10.1.0.1", "10.2.0.1")
	ping := packet("192.168.0.2", "192.168.0.1", echo)
	set := func(now network.Instant, by int64) network.Instant { now.Wall += by; return now }
	want(t, "at once", table, a, in(0), forth, "relay to node-001")
	want(t, "to one that had expired when it was admitted", table, a, in(0), packet("10.0.0.1", "10.3.0.1"), "drop destination-expired")
	want(t, "from it", table, idOf(t, table, "node-003"), in(0), packet("10.3.0.1", "10.0.0.1"), "drop sender-expired")
	want(t, "just before", table, a, in(999), forth, "relay to node-001")
	want(t, "sender's end", table, a, in(1000), forth, "drop sender-expired")
	want(t, "sender's end, not even an echo", table, a, in(1000), ping, "drop sender-expired")
	want(t, "sender's end, whatever it sends", table, a, in(1000), nil, "drop sender-expired")
	want(t, "sender's end, clock set back", table, a, set(in(1000), -3_600_000), forth, "drop sender-expired")
	want(t, "sender's end, clock set ahead", table, a, set(in(0), 1000), forth, "drop sender-expired")
	want(t, "the other goes on", table, b, in(1999), on, "relay to node-002")

	x.Nodes[0].ExpiresAt = networktest.Admitted + 9000
	table = compile(t, Empty(nil), x)
	a = idOf(t, table, "node-000")
	want(t, "before the destination's end", table, a, in(1999), forth, "relay to node-001")
	want(t, "destination's end", table, a, in(2000), forth, "drop destination-expired")
	want(t, "destination's end, clock set back", table, a, set(in(2000), -3_600_000), forth, "drop destination-expired")
	want(t, "destination's end, clock set ahead", table, a, set(in(0), 2000), forth, "drop destination-expired")
	want(t, "destination's end, without a grant", table, a, in(2000), packet("10.0.0.1", "10.1.1.1"), "drop no-grant")
}

// B197: many goroutines judge by one table while the next ones are compiled from it,
// without a race.
func TestB197_OneTableForAll(t *testing.T) {
	table := compile(t, nil, granted())
	a := idOf(t, table, "node-000")
	var crew sync.WaitGroup
	faults := make(chan string, 8)
	for range 4 {
		crew.Go(func() {
			p := packet("10.0.0.1", "10.1.0.1")
			for i := range 2000 {
				if got := said(table.Judge(p, a, in(int64(i)))); got != "relay to node-001" {
					faults <- got
					return
				}
			}
			table.Explain(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.1.0.1"), admitted)
		})
	}
	for i := range 50 {
		x := granted()
		x.Revision += int64(i)
		if _, err := Compile(table, x, in(int64(i))); err != nil {
			faults <- fmt.Sprint(err)
			break
		}
	}
	crew.Wait()
	close(faults)
	for fault := range faults {
		t.Error(fault)
	}
}
