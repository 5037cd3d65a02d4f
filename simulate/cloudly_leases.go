package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"serve.zone/relay/contract"
)

var errNoProjection = errors.New("node has no projection")

// Authority returns the revision that signs now, which is what a node stores in
// its trust.
func (c *Cloudly) Authority() Authority {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.authority.Authority
}

// RotateAuthority begins the next revision. Renewals are signed under it from
// now on, and nodes refuse them until they have a projection that it signed.
func (c *Cloudly) RotateAuthority() Authority {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.authority = NewSigningAuthority(c.authority.Generation + 1)
	for _, n := range c.cluster.nodes {
		n.signed = nil
	}
	return c.authority.Authority
}

// Project issues the next projection of a node, with a window that begins with
// the current slot. How it reaches the node is the caller's: the seeds name no
// method (contract O14).
func (c *Cloudly) Project(id string) (Projection, error) {
	var next Projection
	err := c.changeNode(id, func(n *node) {
		generation := int64(1)
		if n.projection != nil {
			generation = n.projection.Reference.Generation + 1
		}
		// The digest names one exact content; the content itself is of no use here.
		sum := sha256.Sum256(fmt.Appendf(nil, "projection of %s, generation %d", id, generation))
		next = Projection{
			Reference: contract.Reference{ID: "projection-" + id, Generation: generation, Digest: "sha256:" + hex.EncodeToString(sum[:])},
			Scope:     contract.NodeScope{Controller: c.cfg.Controller, NodeID: id, RuntimeNamespace: c.cfg.RuntimeNamespace},
			Authority: c.authority.Reference(),
			DNS:       slotWindow(SlotOf(c.wall())),
		}
		n.projection, n.signed = &next, nil
		c.renewSoon()
	})
	return next, err
}

// Renewal signs the renewal of one slot for a node. The same slot of the same
// projection always gives the same bytes, whoever delivers them. The slot must
// come after the one that the projection's own window is of.
func (c *Cloudly) Renewal(id string, slot int64) (contract.SignedDNSLeaseRenewal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewal(id, slot)
}

// renewal keeps what it signed: each slot is in the runs of four hours.
func (c *Cloudly) renewal(id string, slot int64) (contract.SignedDNSLeaseRenewal, error) {
	n := c.cluster.known(id)
	if n == nil || n.projection == nil {
		return contract.SignedDNSLeaseRenewal{}, errNoProjection
	}
	if signed, ok := n.signed[slot]; ok {
		return signed, nil
	}
	p := n.projection
	signed, err := c.authority.Sign(contract.DNSLeaseRenewal{
		Controller: p.Scope.Controller, NodeID: id, RuntimeNamespace: p.Scope.RuntimeNamespace,
		Projection: p.Reference, Sequence: slot - p.DNS.IssuedAt/SlotEvery.Milliseconds(), DNS: slotWindow(slot),
	})
	if err != nil {
		return contract.SignedDNSLeaseRenewal{}, err
	}
	if n.signed == nil || len(n.signed) >= maximumSigned {
		n.signed = map[int64]contract.SignedDNSLeaseRenewal{}
	}
	n.signed[slot] = signed
	return signed, nil
}

// Run signs the renewals of count slots from the first one on, as a relay is to
// hold them. Without a slot it is the run that empties what is held.
func (c *Cloudly) Run(id string, first int64, count int) (contract.HoldDNSLeaseRenewalsRequest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.cluster.known(id)
	if n == nil || n.projection == nil {
		return contract.HoldDNSLeaseRenewalsRequest{}, errNoProjection
	}
	run := contract.HoldDNSLeaseRenewalsRequest{NodeID: id, Projection: n.projection.Reference,
		Renewals: []contract.SignedDNSLeaseRenewal{}}
	for slot := first; slot < first+int64(count); slot++ {
		signed, err := c.renewal(id, slot)
		if err != nil {
			return contract.HoldDNSLeaseRenewalsRequest{}, err
		}
		run.Renewals = append(run.Renewals, signed)
	}
	return run, nil
}
