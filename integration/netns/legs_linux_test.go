package netns_test

import (
	"fmt"
	"os"
)

// ethernet is the MTU of a leg that nothing narrows.
const ethernet = 1500

// wire joins two namespaces by a pair of interfaces. Their packets are cut to the MTU
// before they leave, as on a wire: without that, the batches in which QUIC sends (UDP GSO)
// would cross whole, and a filter would see a batch for a packet.
func wire(near *space, nearName string, far *space, farName string, mtu int) {
	near.t.Helper()
	near.ip(fmt.Sprintf("link add %s mtu %d gso_max_segs 1 type veth peer name %s mtu %d gso_max_segs 1 netns /proc/%d/fd/%d",
		nearName, mtu, farName, mtu, os.Getpid(), far.file.Fd()))
	near.ip("link set " + nearName + " gso_max_segs 1 up")
	far.ip("link set " + farName + " gso_max_segs 1 up")
}

// direct lays a member's leg to the hub as one link of an MTU.
func direct(mtu int) func(*member) {
	return func(m *member) {
		m.c.t.Helper()
		i := m.n + 1
		wire(m.c.home, m.hubEnd(), m.space, uplink, mtu)
		m.c.home.ip(fmt.Sprintf("addr add 10.64.%d.1/24 dev %s", i, m.hubEnd()))
		m.space.ip(fmt.Sprintf("addr add 10.64.%d.2/24 dev %s\nroute add default via 10.64.%d.1", i, uplink, i))
	}
}

// routed lays a member's leg by way of a router with a ruleset of its own, whose
// interfaces are outer, to the hub, and inner.
func routed(rules string) func(*member) {
	return func(m *member) {
		m.c.t.Helper()
		i := m.n + 1
		m.router = newSpace(m.c.t)
		m.router.set("ip_forward", "1")
		wire(m.c.home, m.hubEnd(), m.router, "outer", ethernet)
		wire(m.router, "inner", m.space, uplink, ethernet)
		m.c.home.ip(fmt.Sprintf("addr add 10.64.%d.1/24 dev %s\nroute add 10.65.%d.0/24 via 10.64.%d.2", i, m.hubEnd(), i, i))
		m.router.ip(fmt.Sprintf("addr add 10.64.%d.2/24 dev outer\naddr add 10.65.%d.1/24 dev inner\nroute add default via 10.64.%d.1", i, i, i))
		m.router.nft(rules)
		m.space.ip(fmt.Sprintf("addr add 10.65.%d.2/24 dev %s\nroute add default via 10.65.%d.1", i, uplink, i))
	}
}

// uplink is a member's interface to the hub, or to its router.
const uplink = "uplink"

// hubEnd is the hub's interface to a member.
func (m *member) hubEnd() string { return "to-" + m.name }
