package demo

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/userspace"
	"serve.zone/relay/simulate"
)

// nodeNames are the nodes of the cluster, beside the one that the relay runs on.
var nodeNames = []string{"node-a", "node-b", "node-c"}

// Their places in cluster.nodes.
const (
	nodeA = iota
	nodeB
	nodeC
)

// Where the nodes are in the VPN. Each has one workload address and its own policy
// domain, which is its name.
const (
	controlPrefix = "10.90.0.0/24"
	authorityID   = "demo-network"
)

// workload is the address of a node's workloads.
func workload(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 91, byte(i), 2}) }

// member is one node: a daemon that keeps its session through the relay, and a tunnel
// to the relay's hub that ends in a network stack inside this process.
type member struct {
	name       string
	address    netip.Addr // of its workloads
	credential simulate.NodeCredential
	pallet     *simulate.Pallet
	projection simulate.Projection // what Cloudly last projected it to be
	reports    int64               // batches of log that it has reported

	tunnel *node.Client // nil before the tunnel is started
	stack  *userspace.Stack
}

// enroll makes Cloudly know a node.
func (c *cluster) enroll(i int) error {
	m := &member{name: nodeNames[i], address: workload(i)}
	var err error
	if m.credential, err = c.cloudly.EnrollNode(m.name); err != nil {
		return err
	}
	c.nodes = append(c.nodes, m)
	return nil
}

// pallet starts the daemon of a node: it dials the relay, registers, and does both
// again whenever its socket ends.
func (c *cluster) pallet(name string, credential simulate.NodeCredential) (*simulate.Pallet, error) {
	p, err := simulate.NewPallet(simulate.PalletConfig{
		URL: c.origin(), TLS: c.trust(), Dial: c.toRelay, Wall: time.Now,
		NodeID: name, Credential: credential, Authority: c.cloudly.Authority(),
		FirstBackoff: firstBackoff, LastBackoff: lastBackoff,
	})
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	c.onClose(p.Close)
	return p, nil
}

// memberOf is a node as a network has it.
func (c *cluster) memberOf(i int) (contract.VPNNode, error) {
	m := c.nodes[i]
	key, err := c.cloudly.NodeVPNKey(m.name)
	if err != nil {
		return contract.VPNNode{}, err
	}
	return contract.VPNNode{
		NodeID: m.name, PublicKey: key.String(), ControlAddress: fmt.Sprintf("10.90.0.%d", 10+i),
		ExpiresAt:        time.Now().Add(membershipLife).UnixMilli(),
		WorkloadPrefixes: []contract.VPNWorkload{{CIDR: netip.PrefixFrom(m.address, 24).Masked().String(), PolicyDomain: m.name}},
	}, nil
}

// membershipLife is how long the nodes are members: longer than anybody watches.
const membershipLife = 30 * 24 * time.Hour

// project has Cloudly issue a projection of a node, and gives it to the node. How it
// travels is not stated by the contract (O14), so it takes no way through the relay.
func (c *cluster) project(m *member) error {
	var err error
	if m.projection, err = c.cloudly.Project(m.name); err != nil {
		return err
	}
	m.pallet.AdmitProjection(m.projection)
	return nil
}

// connect asks Cloudly, through the relay, for the node's VPN credential, and starts
// the tunnel that it is for.
func (c *cluster) connect(ctx context.Context, m *member) error {
	answer, err := m.pallet.GetManagedVPNCredential(ctx)
	if err != nil {
		return fmt.Errorf("%s asks for its VPN credential: %w", m.name, err)
	}
	credential, err := readCredential(answer)
	if err != nil {
		return fmt.Errorf("%s reads its VPN credential: %w", m.name, err)
	}
	if m.stack, err = userspace.New(m.address); err != nil {
		return err
	}
	if m.tunnel, err = node.New(node.Config{Credential: credential, Device: m.stack}); err != nil {
		m.stack.Close()
		return err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.tunnel.Run(run) // it closes the stack
	}()
	c.onClose(func() { stop(); <-ended })
	return nil
}
