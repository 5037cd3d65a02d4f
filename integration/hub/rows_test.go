package hub_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/typedsocket"
)

// R13, R15, R56: what the registration says of the hub is where it is bound; the
// network is pulled behind it; before the first network the hub takes nobody.
func TestR13_R56_TheHubIsRegisteredAndStartsEmpty(t *testing.T) {
	c := start(t)
	hub := c.facts()
	var shown struct {
		Bound     string `json:"bound"`
		PublicKey string `json:"publicKey"`
	}
	c.Section("hub", &shown)
	if hub.QUICPort == 0 || shown.Bound != fmt.Sprintf("127.0.0.1:%d", hub.QUICPort) || shown.PublicKey != hub.PublicKey {
		t.Errorf("registered %+v, shown %+v", hub, shown)
	}
	var calls []string
	for _, m := range c.Cloudly.Frames().Messages() {
		if !m.Sent && m.Request && (m.Method == contract.MethodRegisterClusterRelay || m.Method == contract.MethodGetVPNNetwork) {
			calls = append(calls, m.Method)
		}
	}
	if want := []string{contract.MethodRegisterClusterRelay, contract.MethodGetVPNNetwork}; !slices.Equal(calls, want) {
		t.Errorf("the relay called %v", calls)
	}
	c.admit()
	stranger := c.join(0, c.keys["node-a"])
	c.Eventually("the refusal", func() error { return stranger.ended(node.HubNotAdmitted) })
	c.push()
	c.Within(30*time.Second, "the tunnel", func() error { return stranger.is(node.StateUp) })
}

// R15: without a hub the member is absent, and the registration is accepted.
func TestR15_NoHub(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	if all := r.Cloudly.Registrations(); len(all) != 1 || all[0].Relay.VPNHub != nil {
		t.Errorf("registered %+v", all)
	}
}

// ended reports whether the client's last attempt or tunnel ended for a reason.
func (m *member) ended(want node.Reason) error {
	s := m.client.Status()
	if s.Endings[want] == 0 {
		return fmt.Errorf("it ended %v", s.Endings)
	}
	return nil
}

// datagrams sends small datagrams from one workload to another until a condition
// holds.
func (c *cluster) datagrams(from *member, to int, what string, until func() error) {
	c.t.Helper()
	conn, err := from.DialContext(c.Soon(), "udp", netip.AddrPortFrom(workload(to), 7000).String())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	c.Eventually(what, func() error {
		if _, err := conn.Write([]byte("packet")); err != nil {
			return err
		}
		return until()
	})
}

// arrived reports whether a datagram has come to a socket.
func arrived(socket net.PacketConn) func() error {
	return func() error {
		socket.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, _, err := socket.ReadFrom(make([]byte, 100))
		return err
	}
}

// more reports whether the hub has dropped for a reason since.
func (c *cluster) more(reason string) func() error {
	before, _ := c.dropped(reason)
	return func() error {
		if now, _ := c.dropped(reason); now <= before {
			return fmt.Errorf("%v were dropped for %s, as before", now, reason)
		}
		return nil
	}
}

// R61, R62: a member's key connects, an unknown one does not. A grant lets packets
// pass in its direction alone, and a new one works without a new connection.
func TestR61_R62_KeysAndDirectedGrants(t *testing.T) {
	c := start(t)
	c.admit()
	c.admit()
	c.grant([2]int{0, 1})
	c.push()
	a, b := c.joined(0), c.joined(1)
	unknown, err := node.GeneratePrivateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stranger := c.join(2, unknown)
	c.Eventually("the refusal of a stranger", func() error { return stranger.ended(node.HubNotAdmitted) })

	var sockets []net.PacketConn
	for n, m := range []*member{a, b} {
		socket, err := m.ListenPacket("udp", netip.AddrPortFrom(workload(n), 7000).String())
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		sockets = append(sockets, socket)
	}
	c.datagrams(a, 1, "a to b", arrived(sockets[1]))
	c.datagrams(b, 0, "b to a is dropped", c.more("no-grant"))
	if err := arrived(sockets[0])(); err == nil {
		t.Error("a packet passed without a grant")
	}
	c.grant([2]int{0, 1}, [2]int{1, 0})
	c.push()
	c.datagrams(b, 0, "b to a", arrived(sockets[0]))
	for _, m := range []*member{a, b} {
		if s := m.client.Status(); s.Tunnels != 1 {
			t.Errorf("%d tunnels", s.Tunnels)
		}
	}
}

// transfer has one member send so many bytes to another over TCP, and returns an error
// unless all of them arrive as they were.
func (c *cluster) transfer(from, to *member, at int, size int64) error {
	source := &io.LimitedReader{R: rand.Reader, N: size}
	if err := c.stream(from, to, at, source); err != nil {
		return err
	}
	if source.N > 0 {
		return fmt.Errorf("%d of %d bytes were sent", size-source.N, size)
	}
	return nil
}

// calls has one workload send another small datagrams, one after every pause, until the
// flow is stopped.
func (c *cluster) calls(from *member, to int, pause time.Duration) *flow {
	c.t.Helper()
	conn, err := from.DialContext(c.Soon(), "udp", netip.AddrPortFrom(workload(to), 7000).String())
	if err != nil {
		c.t.Fatal(err)
	}
	f, over := &flow{}, make(chan struct{})
	var once sync.Once
	var sending sync.WaitGroup
	sending.Go(func() {
		defer conn.Close()
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-over:
				return
			}
			if _, err := conn.Write([]byte("packet")); err == nil {
				f.sent.Add(1)
			}
		}
	})
	f.stop = func() { once.Do(func() { close(over) }); sending.Wait() }
	c.t.Cleanup(f.stop)
	return f
}

// wantForbidden waits until the hub has dropped some of what a node goes on sending to a
// member that is watched, and holds that nothing of it has left since the call.
func (c *cluster) wantForbidden(what string, from int, to *watched) {
	c.t.Helper()
	mark := func() {
		if err := to.fromNow(c.Soon(), func(n int) bool { return n == from }); err != nil {
			c.t.Fatal(err)
		}
	}
	wantNone := func() {
		to.mu.Lock()
		defer to.mu.Unlock()
		if n := to.behind[from]; n > 0 {
			c.t.Fatalf("%s: %d packets left behind the answer", what, n)
		}
	}
	mark()
	dropped := c.more("no-grant")
	c.Eventually(what+": packets to be dropped", func() error { wantNone(); return dropped() })
	mark() // all that has left until now was looked at
	wantNone()
	if err := to.fromNow(c.Soon(), nil); err != nil {
		c.t.Fatal(err)
	}
}

// R60, R66: revisions that change grants and expiry, while a transfer runs and its sender
// sends to a third node all the time: of that, nothing leaves the hub behind an answer that
// takes the grant away, and packets pass behind one that gives it. Nobody has to connect
// again, and no byte of the transfer is lost.
func TestR60_R66_RevisionsUnderATransfer(t *testing.T) {
	c := start(t)
	for range 3 {
		c.admit()
	}
	c.grant([2]int{0, 1}, [2]int{1, 0})
	c.push()
	a, b, third := c.joined(0), c.joined(1), c.watch(2)
	source, done := newEndless(), make(chan error, 1)
	t.Cleanup(source.end)
	go func() { done <- c.stream(a, b, 1, source) }()
	calls := c.calls(a, 2, 2*time.Millisecond)
	const few = 5
	for n := range 20 {
		c.network.Nodes[0].ExpiresAt += 1000
		if n%2 == 0 {
			c.grant([2]int{0, 1}, [2]int{0, 2}, [2]int{1, 0})
			c.pushIdle()
			c.wantFrom(fmt.Sprintf("packets by the grant of revision %d", c.network.Revision), third, 0, few)
		} else {
			c.grant([2]int{0, 1}, [2]int{1, 0})
			c.pushIdle()
			c.wantForbidden(fmt.Sprintf("revision %d", c.network.Revision), 0, third)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("the transfer ended before the revisions did: %v", err)
	default:
	}
	calls.stop()
	c.Eventually("a good part of the transfer", func() error {
		if n := c.shownOf(1).ToBytes; n < 1<<20 {
			return fmt.Errorf("%d bytes", n)
		}
		return nil
	})
	source.end()
	if err := <-done; err != nil {
		t.Errorf("the transfer: %v", err)
	}
	for _, m := range []*member{a, b} {
		if s := m.client.Status(); s.Tunnels != 1 {
			t.Errorf("%d tunnels, endings %v", s.Tunnels, s.Endings)
		}
	}
	if n := c.shownOf(2).Sessions; n != 1 || !third.open() {
		t.Errorf("the third node had %d sessions", n)
	}
	// Of the transfer nothing was dropped for a grant: what was is datagrams to the third.
	lost := calls.sent.Load() - uint64(third.of(0))
	if d := c.shownOf(0).Dropped; len(d) != 1 || d[0].Reason != "no-grant" || d[0].Packets > lost {
		t.Errorf("of what the sender sent %v were dropped, and %d datagrams did not come", d, lost)
	}
	if d := c.shownOf(1).Dropped; len(d) != 0 {
		t.Errorf("of what the taker sent %v were dropped", d)
	}
	if n, _ := c.dropped("destination-offline"); n > 0 {
		t.Errorf("%v packets were dropped for a member that is not there", n)
	}
}

// R59, R64: a member that the next revision does not name is closed, and what is sent
// to it is dropped. An older revision is refused by name and changes nothing.
func TestR59_R64_WithdrawalByOmission(t *testing.T) {
	c := start(t)
	c.admit()
	c.admit()
	c.grant([2]int{0, 1})
	c.push()
	a, b := c.joined(0), c.joined(1)
	before := c.network
	before.Nodes = slices.Clone(before.Nodes)
	c.network.Nodes, c.network.Grants = c.network.Nodes[:1], nil
	c.push()
	c.Eventually("b is closed", func() error { return b.ended(node.HubNotAdmitted) })
	c.datagrams(a, 1, "a to b is dropped", c.more("destination-unknown"))
	var refused *typedsocket.RemoteError
	if _, err := c.Cloudly.ApplyNetwork(c.Soon(), before); !errors.As(err, &refused) || !strings.HasPrefix(refused.Text, string(contract.VPNNetworkRevisionStale)) {
		t.Errorf("an older revision: %v", err)
	}
	if err := a.is(node.StateUp); err != nil {
		t.Error(err)
	}
}
