package policy

import (
	"errors"
	"fmt"
	"net/netip"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/network"
)

// Compile makes the table of a network that was admitted at that instant, to
// replace prev. prev is the table in force, nil only when there was none before in
// this process; it may be in use meanwhile. The table keeps the network, which
// nobody changes from now on.
//
// A member whose membership continues keeps its ID, and its deadline never moves
// beyond what both clocks allow (package network).
//
// The network is one that its reader let pass. Of any other, what would make the
// table ambiguous is an error that names the member of the network, and no table:
// the hub answers failed and stays with what it has (contract O22c).
func Compile(prev *Table, next contract.VPNNetwork, admitted network.Instant) (*Table, error) {
	prefixes := 0
	for i := range next.Nodes {
		prefixes += len(next.Nodes[i].WorkloadPrefixes)
	}
	c := compiler{
		table:     &Table{epoch: prev.Epoch() + 1, network: &next},
		addresses: make(map[netip.Addr]bool, len(next.Nodes)),
		domain:    make(map[string]domain, prefixes), // at most so many
	}
	// Each step stands on the one before, so that the first error is the one to tell.
	for _, step := range []func() error{
		c.control, func() error { return c.members(prev, admitted) }, c.prefixes, c.grants,
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("compiling the network: %w", err)
		}
	}
	return c.table, nil
}

// compiler is a table that is being made.
type compiler struct {
	table     *Table
	addresses map[netip.Addr]bool // control addresses that nodes have
	domain    map[string]domain
}

// domain is what is known of a policy domain while grants are read.
type domain struct {
	number uint16
	slot   uint16
}

func (c *compiler) control() error {
	prefix, ok := contract.ParseIPv4Prefix(c.table.network.ControlPrefix)
	if !ok || prefix.Bits() > contract.MaximumControlPrefixLength {
		return errors.New("controlPrefix is not an ipv4 cidr with room for a hub")
	}
	c.table.control, c.table.hub = prefix, prefix.Addr().Next()
	return nil
}

// members places every member: those that continue where they are, then the
// others in the places that are left.
func (c *compiler) members(prev *Table, admitted network.Instant) error {
	t, nodes := c.table, c.table.network.Nodes
	if len(nodes) > Slots {
		return fmt.Errorf("nodes has more than %d nodes", Slots)
	}
	t.members = make([]Member, len(nodes))
	t.keys = make(map[contract.NoiseKey]*Member, len(nodes))
	for i := range nodes {
		if i > 0 && nodes[i-1].NodeID >= nodes[i].NodeID {
			return fmt.Errorf("nodes[%d].nodeId is not in sorted order", i)
		}
		if err := c.member(i); err != nil {
			return err
		}
		t.members[i].Deadline = network.NewDeadline(nodes[i].ExpiresAt, admitted)
	}
	c.keep(prev, admitted)
	c.settle()
	return nil
}

// member reads one node.
func (c *compiler) member(i int) error {
	t, n := c.table, &c.table.network.Nodes[i]
	key, ok := contract.ParseNoiseKey(n.PublicKey)
	if !ok {
		return fmt.Errorf("nodes[%d].publicKey is not a noise key", i)
	}
	if t.keys[key] != nil {
		return fmt.Errorf("nodes[%d].publicKey is the key of another node", i)
	}
	address, ok := contract.ParseIPv4(n.ControlAddress)
	if !ok || !t.control.Contains(address) || address == t.hub {
		return fmt.Errorf("nodes[%d].controlAddress is not an address that the control prefix has for nodes", i)
	}
	if c.addresses[address] {
		return fmt.Errorf("nodes[%d].controlAddress is the address of another node", i)
	}
	c.addresses[address] = true
	m := &t.members[i]
	m.NodeID, m.Key, m.ControlAddress = n.NodeID, key, address
	t.keys[key] = m
	return nil
}

// keep gives the members that continue what they had.
func (c *compiler) keep(prev *Table, admitted network.Instant) {
	if prev == nil {
		return
	}
	for _, p := range network.Compare(prev.network, c.table.network) {
		if p.Fate != network.Continues {
			continue
		}
		was, m := &prev.members[p.Held], &c.table.members[p.Next]
		m.ID = was.ID
		m.Deadline = was.Deadline.Renew(m.Deadline.Wall, admitted)
		c.table.slots[m.ID.slot] = m
	}
}

// settle places the members that have no place yet.
func (c *compiler) settle() {
	t := c.table
	free := uint16(0)
	for i := range t.members {
		m := &t.members[i]
		if m.ID != (ID{}) {
			continue
		}
		for t.slots[free] != nil {
			free++
		}
		m.ID = ID{slot: free, since: t.epoch}
		t.slots[free] = m
	}
}

func (c *compiler) prefixes() error {
	t := c.table
	for i := range t.members {
		workloads := t.network.Nodes[i].WorkloadPrefixes
		if len(workloads) > contract.MaximumVPNPrefixes {
			return fmt.Errorf("nodes[%d].workloadPrefixes has more than %d prefixes", i, contract.MaximumVPNPrefixes)
		}
		for j := range workloads {
			if err := c.prefix(&workloads[j], t.members[i].ID.slot); err != nil {
				return fmt.Errorf("nodes[%d].workloadPrefixes[%d].%w", i, j, err)
			}
		}
	}
	return nil
}

// prefix adds one workload prefix of the member in that place.
func (c *compiler) prefix(w *contract.VPNWorkload, slot uint16) error {
	prefix, ok := contract.ParseIPv4Prefix(w.CIDR)
	if !ok {
		return errors.New("cidr is not an ipv4 cidr")
	}
	d, carried := c.domain[w.PolicyDomain]
	switch {
	case !carried:
		// There are at most 256 × 128 domains, as many as there are prefixes.
		d = domain{number: uint16(len(c.table.domains)), slot: slot}
		c.domain[w.PolicyDomain] = d
		c.table.domains = append(c.table.domains, w.PolicyDomain)
	case d.slot != slot:
		return errors.New("policyDomain is a domain of another node")
	}
	return c.insert(prefix, place{slot: slot, domain: d.number})
}

// insert adds a prefix that lies beside all others.
func (c *compiler) insert(prefix netip.Prefix, p place) error {
	if c.table.control.Overlaps(prefix) {
		return errors.New("cidr overlaps the control prefix")
	}
	if c.table.prefixes.OverlapsPrefix(prefix) {
		return errors.New("cidr overlaps another workload prefix")
	}
	c.table.prefixes.Insert(prefix, p)
	return nil
}

func (c *compiler) grants() error {
	t := c.table
	t.grants = make(map[grant]struct{}, len(t.network.Grants))
	for i, g := range t.network.Grants {
		source, ok := c.domain[g.SourceDomain]
		if !ok {
			return fmt.Errorf("grants[%d].sourceDomain is not a domain of this network", i)
		}
		destination, ok := c.domain[g.DestinationDomain]
		if !ok {
			return fmt.Errorf("grants[%d].destinationDomain is not a domain of this network", i)
		}
		if source.slot == destination.slot {
			return fmt.Errorf("grants[%d] joins two domains of one node", i)
		}
		t.grants[grantOf(source.number, destination.number)] = struct{}{}
	}
	return nil
}
