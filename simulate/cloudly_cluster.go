package simulate

import (
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"

	"serve.zone/relay/contract"
)

var errNotEnrolled = errors.New("node is not enrolled")

// cluster is Cloudly's model of the one cluster: its records, guarded by
// Cloudly.mu.
type cluster struct {
	origin   string // published relay origin, "" while nobody enabled the relay
	disabled bool   // it was enabled once: its document states an explicit null
	nodes    map[string]*node
	document contract.Raw // replaces the configuration, nil normally

	network    *contract.VPNNetwork
	table      *contract.RouteTable
	desired    contract.PlatformDesiredState
	recipients contract.SecretRecipientState
	ingress    designation
	traffic    heldTraffic
}

// node is a node that Cloudly holds.
type node struct {
	id         string
	foreign    bool // of another cluster
	removed    bool // unknown until it is enrolled again
	credential NodeCredential
	corestore  string // endpoint, "" when none is set
	vpnKey     *ecdh.PrivateKey

	epoch      int64 // of the newest session
	history    []*session
	current    *session
	projection *Projection
	signed     map[int64]contract.SignedDNSLeaseRenewal // by slot, of this projection and the present authority
	captures   captures
}

func newCluster(origin string) cluster {
	return cluster{
		origin: origin,
		nodes:  map[string]*node{},
		desired: contract.PlatformDesiredState{
			Capabilities: contract.Raw("[]"), ProviderConfigs: contract.Raw("[]"),
			Bindings: []contract.PlatformBindingPlacement{},
		},
		recipients: contract.SecretRecipientState{Recipients: []contract.SecretRecipient{}},
	}
}

// known returns a node that Cloudly holds, nil for none.
func (c *cluster) known(id string) *node {
	if n := c.nodes[id]; n != nil && !n.removed {
		return n
	}
	return nil
}

// EnrollNode makes a node of this cluster, or brings back the one there was, and
// returns the credential that its Pallet registers with.
func (c *Cloudly) EnrollNode(id string) (NodeCredential, error) { return c.enroll(id, false) }

// EnrollForeignNode makes a node of another cluster.
func (c *Cloudly) EnrollForeignNode(id string) error {
	_, err := c.enroll(id, true)
	return err
}

func (c *Cloudly) enroll(id string, foreign bool) (NodeCredential, error) {
	if !contract.IsNodeID(id) {
		return NodeCredential{}, fmt.Errorf("enroll a node: the id is not a node id")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.cluster.nodes[id]
	if n == nil {
		key, err := ecdh.X25519().GenerateKey(rand.Reader)
		if err != nil {
			return NodeCredential{}, fmt.Errorf("enroll a node: %w", err)
		}
		n = &node{id: id, vpnKey: key, credential: NodeCredential{1, "palletToken_" + randomHex(32)}}
		c.cluster.nodes[id] = n
	}
	n.foreign, n.removed = foreign, false
	return n.credential, nil
}

// SetNodeCredential gives an enrolled node this credential, for tests that look
// for its token.
func (c *Cloudly) SetNodeCredential(id string, credential NodeCredential) error {
	return c.changeNode(id, func(n *node) { n.credential = credential })
}

// RotateNodeCredential mints the next generation of a node's credential. The
// session that stands goes on until the node registers with the new one.
func (c *Cloudly) RotateNodeCredential(id string) (NodeCredential, error) {
	var next NodeCredential
	err := c.changeNode(id, func(n *node) {
		n.credential = NodeCredential{n.credential.Generation + 1, "palletToken_" + randomHex(32)}
		next = n.credential
	})
	return next, err
}

// RemoveNode makes a node unknown until it is enrolled again. Its credential and
// its sessions are kept for that.
func (c *Cloudly) RemoveNode(id string) error {
	return c.changeNode(id, func(n *node) { n.removed = true })
}

// SetCorestore states the endpoint of a node's Corestore in the configuration,
// or none when it is empty.
func (c *Cloudly) SetCorestore(id, endpoint string) error {
	return c.changeNode(id, func(n *node) { n.corestore = endpoint })
}

func (c *Cloudly) changeNode(id string, change func(*node)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.cluster.known(id)
	if n == nil {
		return errNotEnrolled
	}
	change(n)
	return nil
}

// EnableRelay publishes the origin of the cluster's relay. It pushes nothing.
func (c *Cloudly) EnableRelay(origin string) error {
	if !contract.IsRelayOrigin(origin) {
		return fmt.Errorf("enable the relay: the origin is not a cluster relay origin")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.origin = origin
	return nil
}

// DisableRelay removes the relay block: from now on the configuration states an
// explicit null, registrations are refused, and no relay is registered. It
// pushes nothing.
func (c *Cloudly) DisableRelay() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.origin, c.cluster.disabled = "", true
	c.registered = nil
}

// SetNetwork is the network that pulls are answered with; nil is the fact that
// there is none. Like the next ones it pushes nothing.
func (c *Cloudly) SetNetwork(network *contract.VPNNetwork) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.network = network
}

// SetRouteTable is the table that pulls are answered with, nil for none.
func (c *Cloudly) SetRouteTable(table *contract.RouteTable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.table = table
}

// SetDesiredState is the platform state that pulls are answered with.
func (c *Cloudly) SetDesiredState(state contract.PlatformDesiredState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.desired = state
}

// SetRecipientState is the enrollment state that pulls are answered with.
func (c *Cloudly) SetRecipientState(state contract.SecretRecipientState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.recipients = state
}

// SetConfigurationBody replaces the whole configuration, in pulls and pushes,
// by a body of the caller's; nil brings the model's back.
func (c *Cloudly) SetConfigurationBody(body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster.document = body
}

// NodeVPNKey returns the public key that the managed VPN credential of a node
// holds, for a network that carries the node.
func (c *Cloudly) NodeVPNKey(id string) (contract.NoiseKey, error) {
	var key contract.NoiseKey
	err := c.changeNode(id, func(n *node) { key = contract.NoiseKey(n.vpnKey.PublicKey().Bytes()) })
	return key, err
}
