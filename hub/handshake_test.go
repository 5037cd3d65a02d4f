package hub

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/hub/network/networktest"
	"serve.zone/relay/hub/policy"
	"serve.zone/relay/hub/tunnel"
)

// R61: the network's keys decide who connects. The peer is told one thing, the
// operator three.
func TestR61_KeysOfTheNetworkAloneConnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		x := netOf(1, 4)
		x.Nodes[3].ExpiresAt = networktest.Admitted + 1
		c.must(x)
		next := without(x, 2)
		next.Revision = 2
		c.must(next)
		r.dial(0)
		settle()
		for _, test := range []struct {
			name   string
			node   int
			change func(*dialling)
			code   tunnel.CloseCode
			how    handshakeEnd
		}{
			{"unknown", 77, nil, tunnel.CloseNotAdmitted, endUnknown},
			{"withdrawn", 2, nil, tunnel.CloseNotAdmitted, endWithdrawn},
			{"expired", 3, nil, tunnel.CloseNotAdmitted, endExpired},
			{"another authority", 1, func(d *dialling) { d.authority = "authority:2" }, tunnel.CloseHandshake, endNotAuthentic},
			{"another hub", 1, func(d *dialling) { d.hub = keyOf(5).Public() }, tunnel.CloseHandshake, endNotAuthentic},
			{"an mtu too small", 1, func(d *dialling) { d.offer.InnerMTU = 1280 }, tunnel.CloseIncompatible, endIncompatible},
			{"another version", 1, func(d *dialling) { d.offer.Versions = []uint8{9} }, tunnel.CloseIncompatible, endIncompatible},
			{"no frame", 1, func(d *dialling) {
				d.stop = func(n *node) bool { n.stream.Write([]byte{0x20, 0, 0}); return false }
			}, tunnel.CloseProtocol, endProtocol},
			{"silence", 1, func(d *dialling) {
				d.stop = func(n *node) bool { n.stream.Write([]byte{1}); return false }
			}, tunnel.CloseTimeout, endTimeout},
		} {
			before := r.handshakes(test.how)
			change := []func(*dialling){}
			if test.change != nil {
				change = append(change, test.change)
			}
			begun := time.Now()
			n, _ := r.dialIt(test.node, change...)
			if code := n.closed(); code != test.code {
				t.Errorf("%s: closed with %v, want %v", test.name, code, test.code)
			}
			synctest.Wait()
			if got := r.handshakes(test.how) - before; got != 1 {
				t.Errorf("%s: %d counted as %v", test.name, got, test.how)
			}
			if took := time.Since(begun); took > handshakeLimit+time.Second {
				t.Errorf("%s: took %v", test.name, took)
			}
		}
		if got := r.status(); got.HalfOpen != 0 || len(got.Members) != 3 || got.Members[0].Session == nil {
			t.Errorf("shown %+v", got)
		}
	})
}

// A peer without the hybrid key exchange is refused in TLS, and named.
func TestTLSRefusalsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.helloRefused(r.net.sockets[r.Addr()].LocalAddr(), tunnel.HelloNoHybrid)
		r.helloRefused(r.net.sockets[r.Addr()].LocalAddr(), tunnel.HelloNoALPN)
		if r.handshakes(endNoHybrid) != 1 || r.handshakes(endOtherALPN) != 1 {
			t.Error("not counted")
		}
	})
}

// R64: a member that is left out is disconnected, and packets to it are dropped. One
// whose address changed is told so.
func TestR64_WithdrawalByOmission(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		c := r.cloudly()
		x := netOf(1, 3, 0, 1, 0, 2)
		c.must(x)
		a, b, moved := r.dial(0), r.dial(1), r.dial(2)
		x = without(x, 1)
		x.Revision = 2
		x.Nodes[1].ControlAddress = "192.168.0.99"
		c.must(x)
		if code := b.closed(); code != tunnel.CloseNotAdmitted {
			t.Errorf("b closed with %v", code)
		}
		if code := moved.closed(); code != tunnel.CloseChanged {
			t.Errorf("the one that moved closed with %v", code)
		}
		a.send(packetOf(ip(0), ip(1), 100, 1))
		a.send(packetOf(ip(0), ip(2), 100, 1))
		settle()
		if r.drops(policy.DestinationUnknown) != 1 || r.drops(policy.DestinationOffline) != 1 || !a.open() {
			t.Errorf("%+v", r.member(0))
		}
		r.dial(2)
		if r.member(2).ControlAddress != "192.168.0.99" {
			t.Errorf("%+v", r.member(2))
		}
	})
}

// R65: a membership ends at its time, whether or not Cloudly is there, and setting
// the clock back does not help.
func TestR65_ExpiryIsEnforcedByTheHub(t *testing.T) {
	for _, test := range []struct {
		name string
		set  time.Duration // of the wall clock, after a second
		ends time.Duration // when, from the beginning
	}{
		{"in time", 0, 2 * time.Second},
		{"the clock is set back", -time.Hour, 2 * time.Second},
		{"the clock is set forward", time.Hour, 2 * time.Second}, // seen at the next look
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				c := r.cloudly()
				x := netOf(1, 2, 1, 0, 0, 1)
				x.Nodes[0].ExpiresAt = networktest.Admitted + 2000
				c.must(x)
				a, b := r.dial(0), r.dial(1)
				r.SessionLost()
				time.Sleep(time.Second - time.Since(r.begun))
				r.step(test.set)
				<-a.conn.Context().Done()
				at := time.Since(r.begun)
				if code := a.closed(); code != tunnel.CloseNotAdmitted || at < test.ends-time.Second || at > test.ends+10*time.Millisecond {
					t.Errorf("closed with %v after %v", code, at)
				}
				if test.set <= 0 && at < test.ends {
					t.Errorf("closed too early, after %v", at)
				}
				b.send(packetOf(ip(1), ip(0), 100, 1))
				settle()
				if test.set <= 0 && r.drops(policy.DestinationExpired) != 1 {
					t.Errorf("%d drops", r.drops(policy.DestinationExpired))
				}
				if n, err := r.dialIt(0); err == nil || n.closed() != tunnel.CloseNotAdmitted || r.handshakes(endExpired) != 1 {
					t.Errorf("a handshake after the end: %v", err)
				}
				if got := r.eventsOf(MemberExpired); len(got) == 0 || !strings.Contains(got[0], "node=node-000") {
					t.Errorf("events %q", got)
				}
				if m := r.member(0); !m.Expired || m.Session != nil {
					t.Errorf("%+v", m)
				}
			})
		})
	}
}

// R65: a wall clock that is set beyond the end ends the membership within a second, and
// no packet passes meanwhile.
func TestR65_AClockThatIsSetForwardEndsMemberships(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2, 0, 1))
		a, b := r.dial(0), r.dial(1)
		time.Sleep(5300 * time.Millisecond)
		r.step(2 * time.Hour)
		begun := time.Now()
		a.send(packetOf(ip(0), ip(1), 100, 1))
		for _, n := range []*node{a, b} {
			if code := n.closed(); code != tunnel.CloseNotAdmitted {
				t.Errorf("closed with %v", code)
			}
		}
		if took := time.Since(begun); took > lookEvery+10*time.Millisecond || len(b.take()) != 0 || r.drops(policy.SenderExpired) != 1 {
			t.Errorf("it took %v, %d dropped", took, r.drops(policy.SenderExpired))
		}
	})
}

// A peer that never answers in TLS gives its place back.
func TestAPeerThatNeverAnswersGivesItsPlaceBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.net.watch(func(from, _ netip.AddrPort, _ []byte) bool { return from == r.Addr() })
		dialled := make(chan error)
		go func() {
			_, err := r.dialIt(0)
			dialled <- err
		}()
		settle()
		if half := r.status().HalfOpen; half != 1 {
			t.Errorf("%d half open", half)
		}
		if err := <-dialled; err == nil {
			t.Error("a handshake without answers succeeded")
		}
		time.Sleep(2 * handshakeLimit)
		synctest.Wait()
		if half := r.status().HalfOpen; half != 0 {
			t.Errorf("%d half open in the end", half)
		}
	})
}

// The newest connection of a member wins, once its node has confirmed it; the older
// one is told so, and packets go to the newer.
func TestTheNewestConfirmedConnectionWins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2, 1, 0))
		a, b := r.dial(0), r.dial(1)
		n, err := r.dialIt(0, func(d *dialling) {
			d.from = "198.51.100.200:0"
			d.stop = func(n *node) bool {
				synctest.Wait()
				if !a.open() {
					t.Error("an unconfirmed connection took the place")
				}
				return true
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if code := a.closed(); code != tunnel.CloseSuperseded {
			t.Errorf("closed with %v", code)
		}
		b.send(packetOf(ip(1), ip(0), 100, 5))
		settle()
		if got := numbers(n.take()); !slices.Equal(got, []int{5}) {
			t.Errorf("the newer one got %v", got)
		}
		if got := r.eventsOf(MemberSuperseded); len(got) != 1 || !strings.Contains(got[0], "198.51.100.200") {
			t.Errorf("events %q", got)
		}
		if m := r.member(0); m.Sessions != 2 || m.Session == nil || !strings.HasPrefix(m.Session.Address, "198.51.100.200") {
			t.Errorf("%+v", m)
		}
		if got := r.eventsOf(MemberDisconnected); len(got) != 0 {
			t.Errorf("events %q", got)
		}
	})
}

// Two machines with one key that dial without a pause: it is said once, one is changed for
// the other every 5 s at most.
func TestTwoMachinesWithOneKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 1))
		last := r.dial(0)
		begun := time.Now()
		var changes []time.Duration
		for time.Since(begun) < 21*time.Second {
			n, err := r.dialIt(0)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-n.ready:
				changes = append(changes, time.Since(begun).Round(time.Second))
				if code := last.closed(); code != tunnel.CloseSuperseded {
					t.Errorf("the older one closed with %v", code)
				}
				last = n
			case <-n.conn.Context().Done():
				if code := n.closed(); code != tunnel.CloseDuplicateKey || !last.open() {
					t.Errorf("closed with %v, the older one open: %v", code, last.open())
				}
			}
			time.Sleep(900 * time.Millisecond)
		}
		for i, at := range changes {
			if i > 1 && (at-changes[i-1] < changesHeldTo-time.Second || at-changes[i-1] > changesHeldTo+2*time.Second) {
				t.Fatalf("changed at %v", changes)
			}
		}
		if len(changes) != 5 || len(r.eventsOf(DuplicateKey)) != 1 || !r.member(0).Alternating {
			t.Errorf("changed at %v, events %q", changes, r.eventsOf(DuplicateKey))
		}
	})
}

// Datagrams before the node's first message behind the hub's are dropped, counted,
// and never relayed.
func TestDatagramsBeforeTheConfirmationAreDropped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.cloudly().must(netOf(1, 2, 0, 1))
		b := r.dial(1)
		a := r.dial(0, func(d *dialling) {
			d.stop = func(n *node) bool {
				n.send(packetOf(ip(0), ip(1), 100, 1))
				time.Sleep(50 * time.Millisecond)
				return true
			}
		})
		a.send(packetOf(ip(0), ip(1), 100, 2))
		settle()
		if got := numbers(b.take()); !slices.Equal(got, []int{2}) || r.metrics.early.Value() != 1 {
			t.Errorf("b got %v, %d early", got, r.metrics.early.Value())
		}
	})
}

func addr(t *testing.T, text string) netip.Addr { t.Helper(); return netip.MustParseAddr(text) }
