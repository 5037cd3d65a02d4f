package netns_test

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// wholePackets waits until both members' datagrams hold a packet of the inner MTU.
func (c *cluster) wholePackets() {
	c.t.Helper()
	c.Eventually("datagrams that hold a whole packet", func() error {
		c.members[0].ping(c.members[1], 1, fullEcho)
		var unknown error
		for _, m := range c.members {
			if s := m.session(); s.ToSize < innerMTU || s.FromSize < innerMTU {
				unknown = errors.Join(unknown, fmt.Errorf("to %s %d bytes, from it %d", m.name, s.ToSize, s.FromSize))
			}
		}
		return unknown
	})
}

// heals waits until full packets pass again.
func (c *cluster) heals() {
	c.t.Helper()
	a, b := c.members[0], c.members[1]
	c.Within(testLimit, "full packets", func() error {
		p := a.space.start("", "ping", a.echo(b, fullEcho, "-l", "5", "-c", "5", "-i", "1", "-W", "1")...)
		if err := p.wait(testLimit); err != nil {
			s := b.session()
			return fmt.Errorf("none is answered; datagrams to %s hold %d bytes, from it %d", b.name, s.ToSize, s.FromSize)
		}
		return nil
	})
}

// B131: a leg becomes narrower somewhere on the way, which nobody is told.
func TestB131_ThePathNarrowsSilently(t *testing.T) {
	if !apart(t) {
		return
	}
	c, _, b := pair(t, direct(ethernet), routed("table inet narrow {\n chain forward {\n type filter hook forward priority 0\n }\n}"))
	c.wholePackets()
	b.router.nft("add rule inet narrow forward meta length > 1280 drop")
	c.heals()
	c.sameSession()
}

// narrowLink makes a member's leg narrower at both of its interfaces.
func (c *cluster) narrowLink(m *member) {
	m.space.ip("link set uplink mtu 1280")
	c.home.ip("link set " + m.hubEnd() + " mtu 1280")
}

// B131: a leg becomes narrower at the machines' own interfaces, so that each send fails.
func TestB131_TheLinkNarrows(t *testing.T) {
	if !apart(t) {
		return
	}
	c, _, b := pair(t, direct(ethernet), direct(ethernet))
	c.wholePackets()
	c.narrowLink(b)
	c.heals()
	c.sameSession()
}

// B131: a member's address changes, and its link is narrower there.
func TestB131_RoamsToANarrowerLink(t *testing.T) {
	if !apart(t) {
		return
	}
	c, _, b := pair(t, direct(ethernet), direct(ethernet))
	c.wholePackets()
	c.narrowLink(b)
	b.space.set("conf/"+uplink+"/promote_secondaries", "1")
	b.space.ip("addr add 10.64.2.3/24 dev uplink\naddr del 10.64.2.2/24 dev uplink")
	time.Sleep(time.Second)
	c.heals()
	c.sameSession()
}
