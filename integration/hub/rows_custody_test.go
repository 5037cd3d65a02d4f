package hub_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/hub/tunnel"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// pair is two members that send each other packets all the time.
type pair struct {
	peers   [2]*peer
	tallies [2]*tally
}

// pair dials nodes 0 and 1, which may send to each other, and returns when packets pass.
func (c *cluster) pair() *pair {
	c.t.Helper()
	var x pair
	for n := range x.peers {
		x.tallies[n] = newTally()
		x.peers[n] = c.dial(n, func(d *dialling) { d.got = x.tallies[n].got })
	}
	for n := range x.peers {
		c.sends(x.peers[n], 2*time.Millisecond, stamped(n, 1-n))
	}
	c.wantPassing("at first", &x)
	return &x
}

// wantPassing waits until more packets have passed in both directions.
func (c *cluster) wantPassing(when string, x *pair) {
	c.t.Helper()
	for n := range x.peers {
		c.wantMore(when+", packets to "+name(n), x.tallies[n], 1-n, 10)
	}
}

// twoMembers starts a relay whose hub holds revision 5, in which nodes 0 and 1 may send to
// each other. Cloudly itself has no network: what is pulled is none.
func twoMembers(t *testing.T) *cluster {
	t.Helper()
	c := start(t)
	c.admit()
	c.admit()
	c.grant([2]int{0, 1}, [2]int{1, 0})
	c.network.Revision = 5
	c.applied("the network of two", c.network, 5)
	return c
}

// wantCustodyEnded waits for the end of custody by this name, and holds it to everything that
// the row asks for of the hub.
func (c *cluster) wantCustodyEnded(reason contract.RefusalName, from uint64, asked time.Time, members int, peers ...*peer) {
	c.t.Helper()
	for _, p := range peers {
		c.wantClosed("a connection", p, tunnel.CloseNotAdmitted)
	}
	if took := time.Since(asked); took > endWait {
		c.t.Errorf("the connections were closed after %s", took)
	}
	told := c.WaitEvent("hub-custody-ended", from)
	if told.Text("reason") != string(reason) || fmt.Sprint(told.Fields["count"]) != fmt.Sprint(members) || fmt.Sprint(told.Fields["revision"]) != "5" {
		c.t.Errorf("the event says %v", told.Fields)
	}
}

// wantNothingHeld checks that the hub shows nothing of a network, and takes nobody.
func (c *cluster) wantNothingHeld(attached bool) {
	c.t.Helper()
	if s := c.shown(); s.Network != nil || len(s.Members) != 0 || s.Attached != attached {
		c.t.Errorf("the hub shows %+v", s)
	}
	c.Eventually("no connection to be half open", func() error {
		if n := c.shown().HalfOpen; n != 0 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	m := c.Metrics()
	for _, metric := range []string{"relay_hub_live_sessions", "relay_hub_network_members", "relay_hub_network_revision", "relay_hub_queued_bytes"} {
		if n, ok := m.Value(metric); n != 0 || !ok {
			c.t.Errorf("%s is %v", metric, n)
		}
	}
	before := c.handshakes("no-network")
	p, err := c.dialIt(0)
	if err == nil {
		err = p.waitSeated(c.Soon())
	}
	if err == nil {
		c.t.Error("a key opens a session with a hub that holds nothing")
		return
	}
	c.wantClosed("a key, with nothing held", p, tunnel.CloseNotAdmitted)
	c.Eventually("the handshake to be counted", func() error {
		if n := c.handshakes("no-network"); n != before+1 {
			return fmt.Errorf("%v are, %v were", n, before)
		}
		return nil
	})
}

// waitEmptied waits until so many pulls have said that there is no network.
func (c *cluster) waitEmptied(count float64) {
	c.t.Helper()
	c.Eventually("a pull that is answered with no network", func() error {
		if n := c.counted("relay_hub_received_networks_total", "origin", "pulled", "outcome", "emptied"); n < count {
			return fmt.Errorf("%v were", n)
		}
		return nil
	})
}

// R20 to R24: each of the five refusals takes the network and closes every connection,
// confirmed or not, so that nothing passes any more. Nobody is taken then, and what comes
// afterwards begins anew: a lower revision of another authority.
func TestR20_R24_NetworkAndSessionsGoWithCustody(t *testing.T) {
	t.Parallel()
	for _, row := range rig.CustodyEnds() {
		t.Run(string(row.Name), func(t *testing.T) {
			c := twoMembers(t)
			p := c.Node("node-x")
			members := c.pair()
			half, err := c.dialIt(0, func(d *dialling) { d.upTo = answered })
			if !errors.Is(err, errHalted) {
				t.Fatal(err)
			}
			pulls := c.counted("relay_hub_received_networks_total", "origin", "pulled", "outcome", "emptied")
			from := c.NextSeq()
			row.Give(c.Rig)
			asked := time.Now()
			if row.Fenced {
				// What the node is told is not looked at: its answer and the end of its
				// socket race.
				p.Send(c.Soon(), protection, []byte(`{}`))
			} else {
				c.RegisterAgain()
			}
			c.wantCustodyEnded(row.Name, from, asked, 2, members.peers[0], members.peers[1], half)
			if !row.Brief {
				c.wantNothingHeld(false)
				_, err := c.Cloudly.CallSocket(c.Soon(), 1, applying, []byte(body(c.network)))
				if !row.Fenced { // whose socket is closed
					c.refusedAs("a network on the socket that stays", err, notReady)
				}
				c.wantNothingHeld(false)
			}
			row.Restore(c.Rig)
			c.waitEmptied(pulls + 1)
			c.wantNothingHeld(true)

			c.network.AuthorityID, c.network.ControlPrefix = "authority-2", "10.94.0.0/24"
			for n := range c.network.Nodes {
				c.network.Nodes[n].ControlAddress = fmt.Sprintf("10.94.0.%d", n+10)
			}
			c.network.Revision = 1
			c.applied("a lower revision of another authority", c.network, 1)
			c.pair()
			if s := c.shown(); s.Members[0].Sessions != 1 || s.Members[1].Sessions != 1 {
				t.Errorf("shown %+v", s.Members)
			}
		})
	}
}

// R20: custody ends as well by the refusal of the pull itself, on the way back from an
// outage, in which the hub goes on, and when the document states that there is no relay.
func TestR20_CustodyOfTheHubEndsInOtherWays(t *testing.T) {
	t.Parallel()
	t.Run("on the pull", func(t *testing.T) {
		c := twoMembers(t)
		members := c.pair()
		from := c.NextSeq()
		c.Cloudly.Script(pulling, simulate.RefuseNamed(contract.RelayNodeForeign, "it moved"))
		asked := time.Now()
		c.RegisterAgain()
		c.wantCustodyEnded(contract.RelayNodeForeign, from, asked, 2, members.peers[:]...)
	})
	t.Run("on the way back", func(t *testing.T) {
		c := twoMembers(t)
		members := c.pair()
		from := c.NextSeq()
		c.Upstream.Outage()
		c.Eventually("an outage", func() error {
			if c.shown().Attached {
				return errors.New("the hub believes Cloudly there")
			}
			return nil
		})
		c.wantPassing("during the outage", members)
		c.Cloudly.ScriptAlways(register, simulate.RefuseNamed(contract.RelayNodeForeign, "it moved"))
		if err := c.Upstream.Resume(); err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		c.Signal(syscall.SIGHUP)
		c.wantCustodyEnded(contract.RelayNodeForeign, from, asked, 2, members.peers[:]...)
		c.wantNothingHeld(false)
	})
	t.Run("by a document", func(t *testing.T) {
		c := twoMembers(t)
		members := c.pair()
		from := c.NextSeq()
		c.WaitCheck(cloudly.Name, cloudly.CheckConfiguration, "ok")
		asked := time.Now()
		c.Configure([]byte(`{"configData":{"id":"cluster-a","data":{"relay":null,"nodes":[]}},"services":[]}`))
		c.wantCustodyEnded(contract.RelayClusterNotEnabled, from, asked, 2, members.peers[:]...)
		c.wantNothingHeld(false)
	})
}

// R25: any other refusal keeps network, sessions and traffic, on a session that stands and
// without one, on a registration and on the pull.
func TestR25_AnotherRefusalKeepsNetworkAndTraffic(t *testing.T) {
	t.Parallel()
	for what, step := range map[string]simulate.Step{
		"an unknown name":    simulate.Refuse("relay-not-verified: it could not be verified", []byte(`{"code":"relay-not-verified"}`)),
		"a name in a text":   simulate.Refuse("refused: relay-node-foreign", nil),
		"a protocol refusal": simulate.RefuseProtocol(contract.PeerBelowMinimum),
	} {
		kept := func(t *testing.T, c *cluster, members *pair, attached bool) {
			t.Helper()
			c.wantPassing("afterwards", members)
			s := c.shown()
			if s.Network == nil || s.Network.Revision != 5 || s.Attached != attached || len(s.Members) != 2 ||
				s.Members[0].Sessions != 1 || s.Members[1].Sessions != 1 {
				t.Errorf("shown %+v %+v", s.Network, s.Members)
			}
			for _, reason := range []string{"custody-suspended", "sender-unknown", "destination-unknown", "destination-offline"} {
				if n, _ := c.dropped(reason); n != 0 {
					t.Errorf("%v packets were dropped for %s", n, reason)
				}
			}
			newest, err := c.dialIt(0) // the network admits as before
			if err != nil || newest.waitSeated(c.Soon()) != nil {
				t.Errorf("a member dials: %v", err)
			}
		}
		for _, method := range []string{register, pulling} {
			t.Run(what+" of "+method, func(t *testing.T) {
				c := twoMembers(t)
				members := c.pair()
				c.Cloudly.SetNetwork(&c.network) // a pull that fails is tried again
				before := len(c.Cloudly.Frames().Received(method))
				c.Cloudly.Script(method, step)
				c.RegisterAgain()
				if err := c.Cloudly.WaitReceived(c.Soon(), method, before+1); err != nil {
					t.Fatal(err)
				}
				if _, err := c.call(`{}`); err == nil { // behind the refusal, on its socket
					t.Error("no network was applied")
				}
				kept(t, c, members, true)
			})
		}
		t.Run(what+" without a session", func(t *testing.T) {
			c := twoMembers(t)
			members := c.pair()
			c.Cloudly.ScriptAlways(register, step)
			c.Upstream.Cut()
			told := cloudly.EventAttemptFailed
			if step.Protocol != "" {
				told = cloudly.EventProtocolRefused
			}
			c.WaitEvent(string(told), 0)
			kept(t, c, members, false)
		})
	}
}
