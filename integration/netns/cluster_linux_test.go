package netns_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/integration/rig"
)

const (
	authority     = "authority-1"
	controlPrefix = "10.90.0.0/24"
	workloads     = "10.91.0.0/16" // that of all members together

	// credentialLife is longer than any test takes.
	credentialLife = time.Hour
)

// hubAddress is where the hub is bound: an address of its own, which every leg leads to.
var hubAddress = netip.MustParseAddrPort("10.64.0.1:4500")

// cluster is a relay with a hub, the network that Cloudly gives it, and members with TUN
// interfaces. The relay and Cloudly are in the namespace that the test process was
// started in, each member is in one of its own.
type cluster struct {
	*rig.Rig
	t       *testing.T
	home    *space
	hubKey  node.PublicKey
	network contract.VPNNetwork
	members []*member
}

// newCluster starts a relay whose hub has no network yet.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		t: t, home: home(t),
		network: contract.VPNNetwork{AuthorityID: authority, ControlPrefix: controlPrefix},
	}
	c.home.ip(fmt.Sprintf("addr add %s/32 dev lo", hubAddress.Addr()))
	key, text := newKey(t)
	c.hubKey = key.Public()
	c.Rig = rig.New(t, rig.AnyPort(), rig.With("hub-listen", hubAddress.String()), rig.Before(func(r *rig.Rig) {
		r.AddSecret("the hub's key", []byte(text))
		r.Set("hub-key-file", r.WriteFile("hub.key", []byte(text), 0o600))
	}))
	c.WaitReady()
	return c
}

// newKey makes a private key, and returns it also as files hold it.
func newKey(t testing.TB) (node.PrivateKey, string) {
	t.Helper()
	var bytes [32]byte
	rand.Read(bytes[:])
	text := base64.StdEncoding.EncodeToString(bytes[:])
	key, err := node.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key, text
}

// admit adds the next member to the network, with a namespace whose uplink is yet to be
// laid and which may send to all others and be sent to, without a push.
func (c *cluster) admit() *member {
	c.t.Helper()
	n := len(c.members)
	key, text := newKey(c.t)
	c.AddSecret("the key of a node", []byte(text))
	stated := nodeOf(n, key)
	m := &member{
		c: c, n: n, name: stated.NodeID, key: text, space: newSpace(c.t),
		workload: netip.AddrFrom4([4]byte{10, 91, byte(n), 2}),
		dials:    hubAddress, expires: time.UnixMilli(stated.ExpiresAt),
	}
	c.members = append(c.members, m)
	c.network.Nodes = append(c.network.Nodes, stated)
	c.network.Grants = nil
	for _, from := range c.members { // in order
		for _, to := range c.members {
			if from != to {
				c.network.Grants = append(c.network.Grants, contract.VPNGrant{SourceDomain: from.name, DestinationDomain: to.name})
			}
		}
	}
	return m
}

// nodeOf is a member as a network states it; n counts from 0.
func nodeOf(n int, key node.PrivateKey) contract.VPNNode {
	name := fmt.Sprintf("node-%c", 'a'+n)
	return contract.VPNNode{
		NodeID: name, PublicKey: key.Public().String(), ControlAddress: fmt.Sprintf("10.90.0.%d", n+10),
		ExpiresAt:        time.Now().Add(credentialLife).UnixMilli(),
		WorkloadPrefixes: []contract.VPNWorkload{{CIDR: fmt.Sprintf("10.91.%d.0/24", n), PolicyDomain: name}},
	}
}

// push gives the hub the next revision, which must be taken, and returns the answer.
func (c *cluster) push() contract.ApplyVPNNetworkAnswer {
	c.t.Helper()
	c.network.Revision++
	answer, err := c.Cloudly.ApplyNetwork(c.Soon(), c.network)
	if err != nil || answer.State == contract.VPNNetworkFailed {
		c.t.Fatalf("revision %d was answered %+v, %v", c.network.Revision, answer, err)
	}
	return answer
}

// pair is a cluster of two members that may send each other everything, with their
// tunnels up.
func pair(t *testing.T, layA, layB func(*member)) (c *cluster, a, b *member) {
	t.Helper()
	c = newCluster(t)
	a, b = c.admit(), c.admit()
	layA(a)
	layB(b)
	c.push()
	a.run()
	b.run()
	a.joined()
	b.joined()
	return c, a, b
}

// sameSession fails the test unless every member is on the first session it has had.
func (c *cluster) sameSession() {
	c.t.Helper()
	for _, m := range c.members {
		shown, err := m.shown()
		if err != nil || shown.Sessions != 1 || shown.Session == nil {
			c.t.Errorf("%s has had %d sessions, now %v, %v", m.name, shown.Sessions, shown.Session, err)
		}
	}
}

// nothingDropped fails the test if the hub has dropped a packet, for whatever reason.
func (c *cluster) nothingDropped() {
	c.t.Helper()
	for _, m := range c.members {
		shown, err := m.shown()
		if err != nil || len(shown.Dropped) > 0 || shown.ToDropped > 0 || shown.Session == nil || shown.Session.LostParts > 0 {
			c.t.Errorf("the hub shows of %s: %+v, its session %+v, %v", m.name, shown, shown.Session, err)
		}
	}
}
