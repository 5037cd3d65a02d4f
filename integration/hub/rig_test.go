package hub_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/userspace"
	"serve.zone/relay/integration/impair"
	"serve.zone/relay/integration/rig"
)

const (
	authority = "authority-1"
	control   = "10.90.0.0/24"
)

// cluster is a relay with a hub, and the network that Cloudly gives it.
type cluster struct {
	*rig.Rig
	t       *testing.T
	network contract.VPNNetwork
	keys    map[string]node.PrivateKey
	seed    uint64      // of the paths
	path    impair.Path // in both directions, of the members that join from now on
}

// mild is the path of every member where a test says nothing else: no tunnel may suffer
// from it. A test that counts every packet takes clean.
var (
	mild = impair.Path{
		Loss: 0.001, Duplication: 0.002, Reordering: 0.005, Corruption: 0.001,
		Delay: 500 * time.Microsecond, Jitter: time.Millisecond, ReorderBy: 3 * time.Millisecond,
	}
	clean = impair.Path{}
)

// seedVariable names the variable of the environment that repeats the paths of a run that
// failed: it logs their seed.
const seedVariable = "RELAY_IMPAIR_SEED"

// seedOf returns the seed of a test's paths, and tells it when the test has failed.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := mathrand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s=%d has the same paths", seedVariable, seed)
		}
	})
	return seed
}

// start starts a relay that has a hub and no network.
func start(t *testing.T, options ...rig.Option) *cluster {
	t.Helper()
	t.Parallel()
	c := &cluster{Rig: rig.New(t, append([]rig.Option{rig.AnyPort(), rig.With("hub-listen", "127.0.0.1:0")}, options...)...),
		t: t, keys: map[string]node.PrivateKey{}, seed: seedOf(t), path: mild}
	c.network = contract.VPNNetwork{AuthorityID: authority, ControlPrefix: control}
	c.WaitReady()
	c.waitEmptied(1) // or the answer to the relay's pull takes away what is pushed meanwhile
	return c
}

// workload is the one address of a node's workload; n counts from 0.
func workload(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 91, byte(n), 2}) }

// name is a node's name and that of its domain.
func name(n int) string { return fmt.Sprintf("node-%c", 'a'+n) }

// admit adds the next node to the network, without a push.
func (c *cluster) admit() {
	c.t.Helper()
	n := len(c.network.Nodes)
	key, err := node.GeneratePrivateKey(rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	c.keys[name(n)] = key
	c.network.Nodes = append(c.network.Nodes, contract.VPNNode{
		NodeID: name(n), PublicKey: key.Public().String(), ControlAddress: fmt.Sprintf("10.90.0.%d", n+10),
		ExpiresAt:        time.Now().Add(time.Hour).UnixMilli(),
		WorkloadPrefixes: []contract.VPNWorkload{{CIDR: fmt.Sprintf("10.91.%d.0/24", n), PolicyDomain: name(n)}},
	})
}

// grant lets packets pass from one node to another, without a push.
func (c *cluster) grant(pairs ...[2]int) {
	c.network.Grants = nil
	for _, p := range pairs { // in order
		c.network.Grants = append(c.network.Grants, contract.VPNGrant{SourceDomain: name(p[0]), DestinationDomain: name(p[1])})
	}
}

// push gives the hub the next revision, and waits until it is effective.
func (c *cluster) push() {
	c.t.Helper()
	c.network.Revision++
	answer, err := c.Cloudly.ApplyNetwork(c.Soon(), c.network)
	if err != nil || answer.AppliedRevision != c.network.Revision || answer.State != contract.VPNNetworkIdle {
		c.t.Fatalf("revision %d was answered %+v, %v", c.network.Revision, answer, err)
	}
}

// member is a node's end of the tunnel.
type member struct {
	*userspace.Stack
	client *node.Client
	way    *impair.Proxy // to the hub
}

// join starts a client with a node's address and a key, whoever's it is, over a path of
// its own.
func (c *cluster) join(n int, key node.PrivateKey) *member {
	c.t.Helper()
	hub := c.facts()
	hubKey, err := node.ParsePublicKey(hub.PublicKey)
	if err != nil {
		c.t.Fatal(err)
	}
	stack, err := userspace.New(workload(n))
	if err != nil {
		c.t.Fatal(err)
	}
	m := &member{Stack: stack}
	m.way, err = impair.New(impair.Config{
		Upstream: netip.AddrPortFrom(netip.MustParseAddr(hub.Address), uint16(hub.QUICPort)),
		Seed:     c.seed + uint64(n), ToUpstream: c.path, ToClient: c.path,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("the path of %s: %v", name(n), m.way)
		}
		m.way.Close()
	})
	m.client, err = node.New(node.Config{
		Credential: node.Credential{
			Hub: m.way.Addr(), HubKey: hubKey, AuthorityID: authority, Key: key,
		},
		Device: stack,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- m.client.Run(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			c.t.Errorf("client of %s: %v", name(n), err)
		}
	})
	return m
}

// joined starts a member's client and waits until its tunnel is up, at both ends: the
// hub reads what confirms it a little later than the node sends it.
func (c *cluster) joined(n int) *member {
	c.t.Helper()
	m := c.join(n, c.keys[name(n)])
	c.Eventually(name(n)+" up", func() error { return m.is(node.StateUp) })
	c.Eventually("the hub has "+name(n), func() error {
		var shown struct {
			Members []struct {
				Node    string    `json:"node"`
				Session *struct{} `json:"session"`
			} `json:"members"`
		}
		c.Section("hub", &shown)
		for _, m := range shown.Members {
			if m.Node == name(n) && m.Session != nil {
				return nil
			}
		}
		return fmt.Errorf("the hub shows %+v", shown)
	})
	return m
}

func (m *member) is(want node.State) error {
	if s := m.client.Status(); s.State != want {
		return fmt.Errorf("it is %s, its last end %+v", s.State, s.Last)
	}
	return nil
}

// facts are what the relay registered of its hub.
func (c *cluster) facts() contract.VPNHub {
	c.t.Helper()
	all := c.Cloudly.Registrations()
	if len(all) == 0 || all[len(all)-1].Relay.VPNHub == nil {
		c.t.Fatalf("no hub was registered: %+v", all)
	}
	return *all[len(all)-1].Relay.VPNHub
}

// dropped is how many packets the hub dropped for a reason.
func (c *cluster) dropped(reason string) (n float64, found bool) {
	return c.Metrics().Value("relay_hub_dropped_packets_total", "reason", reason)
}
