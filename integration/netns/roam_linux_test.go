package netns_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"
)

// roamWait bounds the time until the hub answers a node where it is now. An idle node is
// found with its next keepalive, within ten seconds (package node); the rest is for a busy
// machine. A tunnel that is silent for 30 s has ended.
const roamWait = 20 * time.Second

// ports are those that a router gives to what it hides.
type ports struct{ first, last uint16 }

// masquerade are the rules of a router that hides a member behind its own address.
func masquerade(p ports) string {
	return fmt.Sprintf(`table ip hide {
		chain postrouting {
			type nat hook postrouting priority srcnat
			oifname "outer" meta l4proto udp masquerade to :%d-%d
		}
	}`, p.first, p.last)
}

// rebind has the member's router forget what it hides, and give it another port.
func (m *member) rebind(to ports) {
	m.c.t.Helper()
	m.router.nft("delete table ip hide\n" + masquerade(to))
	m.router.must("", "conntrack", "-D", "-p", "udp", "--dport", fmt.Sprint(hubAddress.Port()))
}

// hidden waits until the hub answers a member where its router hides it.
func (m *member) hidden(p ports) {
	m.c.t.Helper()
	m.follows(func(at netip.AddrPort) bool {
		return at.Addr() == netip.AddrFrom4([4]byte{10, 64, byte(m.n + 1), 2}) && at.Port() >= p.first && at.Port() <= p.last
	})
}

// follows waits until the hub answers a member at a place.
func (m *member) follows(is func(netip.AddrPort) bool) {
	m.c.t.Helper()
	m.c.Within(roamWait, "the hub answers "+m.name+" where it is", func() error {
		if at := m.session().Address; !is(netip.MustParseAddrPort(at)) {
			return fmt.Errorf("it answers to %s", at)
		}
		return nil
	})
}

// quiet waits until QUIC has nothing more to say: what one end has not heard that the other
// has got, it would send again, and so open the way by itself.
func (m *member) quiet() {
	m.c.t.Helper()
	said := ""
	m.c.Eventually("silence of "+m.name, func() error {
		before := said
		if said = m.router.traffic(); said != before {
			time.Sleep(quietFor)
			return errors.New("it sends or is sent to")
		}
		return nil
	})
}

// quietFor is longer than QUIC waits for anything over a path this short, and than the second
// after which the two ends tell each other that a path has turned out wider.
const quietFor = 1500 * time.Millisecond

// traffic are the counts of the namespace's interfaces.
func (s *space) traffic() string {
	s.t.Helper()
	var counts []byte
	err := s.inside(func() (err error) {
		counts, err = os.ReadFile("/proc/thread-self/net/dev")
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(counts)
}

// B190, B193: the NAT before a member forgets it, while the member sends, while it is only
// sent to, and while nobody sends: the hub answers at the new place, in the same session.
func TestB190_B193_NATRebinds(t *testing.T) {
	if !apart(t) {
		return
	}
	first := ports{40000, 40999}
	c, a, b := pair(t, routed(masquerade(first)), direct(ethernet))
	a.hidden(first)
	for _, x := range []struct {
		who  string
		asks func() *program
		then ports
	}{
		{"the member", func() *program { return a.asks(b) }, ports{42000, 42999}},
		{"the other one", func() *program { return b.asks(a) }, ports{44000, 44999}},
		{"nobody", func() *program { a.quiet(); return nil }, ports{46000, 46999}},
	} {
		t.Logf("%s sends", x.who)
		asking := x.asks()
		a.rebind(x.then)
		a.hidden(x.then)
		b.ping(a, 5, fullEcho)
		if asking != nil {
			asking.stop()
		}
		c.sameSession()
	}
}

// B163, B190: the addresses of two members change at the same time, while they talk to each
// other; the one is without any between, so that its packets cannot be sent. Both are
// answered where they are, in the same sessions.
func TestB163_B190_OwnAddressesChange(t *testing.T) {
	if !apart(t) {
		return
	}
	c, a, b := pair(t, direct(ethernet), direct(ethernet))
	asking := a.asks(b)
	a.space.set("conf/"+uplink+"/promote_secondaries", "1") // or the new one would go with the old
	a.space.ip("addr add 10.64.1.3/24 dev uplink\naddr del 10.64.1.2/24 dev uplink")
	b.space.ip("addr del 10.64.2.2/24 dev uplink")
	if unsent := b.space.start("", "ping", b.echo(a, smallEcho, "-c", "5", "-i", "0.05", "-W", "0.1")...); unsent.wait(testLimit) == nil {
		t.Errorf("a member without an address is answered: %s", unsent.output())
	}
	b.space.ip("addr add 10.64.2.3/24 dev uplink\nroute add default via 10.64.2.1")
	for _, m := range c.members {
		m.follows(func(at netip.AddrPort) bool {
			return at.Addr() == netip.AddrFrom4([4]byte{10, 64, byte(m.n + 1), 3})
		})
	}
	asking.stop()
	a.ping(b, 5, fullEcho)
	b.ping(a, 5, fullEcho)
	c.sameSession()
}
