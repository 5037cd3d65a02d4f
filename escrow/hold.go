package escrow

import (
	"fmt"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
)

// hold judges a request that the contract has judged alone, with the refusal of
// that, in the order of contract §9.3, and takes it over. A refused one changes
// nothing held. It returns how many renewals were sent.
func (m *machine) hold(at instant, x contract.HoldDNSLeaseRenewalsRequest, alone *contract.Refusal) (int, *contract.Refusal) {
	defer m.settle()
	m.look(at)
	switch {
	case !m.attached:
		return 0, refusal(contract.EscrowCloudlyOnly, "this connection is not the registered session to Cloudly")
	case m.draining:
		return 0, refusal(contract.RelayNotReady, "the relay is about to stop")
	case alone != nil:
		return 0, alone
	}
	n := m.nodes[x.NodeID]
	if len(x.Renewals) == 0 {
		m.empty(n)
		return 0, nil
	}
	if refused := m.judge(n, x); refused != nil {
		return 0, refused
	}
	first := n.run == nil
	m.setRun(n, newRun(x))
	if first {
		m.tell(RunHeld, field.Node(n.id), field.Count(len(x.Renewals)), field.Expires(time.UnixMilli(n.run.end())))
	}
	m.prune() // some windows may have ended already
	return len(x.Renewals), nil
}

// empty clears what is held for a node, whether or not it is carried.
func (m *machine) empty(n *node) {
	if n == nil || n.run == nil {
		return
	}
	m.tell(RunEmptied, field.Node(n.id), field.Count(len(n.run.renewals)))
	m.setRun(n, nil)
	m.forget(n)
}

// judge judges a run by what else is known here. n is nil for an unknown node.
func (m *machine) judge(n *node, x contract.HoldDNSLeaseRenewalsRequest) *contract.Refusal {
	scope, _ := x.Scope()
	switch {
	case n == nil || !n.bound:
		return refusal(contract.EscrowNodeNotCarried, "the node has no session on a live socket of this relay")
	case !n.confirmed:
		return refusal(contract.EscrowNodeNotCarried, "the node has not registered again since the session to Cloudly began")
	case !scope.Equal(n.binding.Session.Scope):
		return refusal(contract.EscrowRunForeignSession, "the scope of the renewals is not that of the node's session")
	case x.Renewals[len(x.Renewals)-1].Renewal.DNS.ExpiresAt <= milliseconds(m.at.wall):
		return refusal(contract.EscrowRunStale, "every window has ended")
	case n.run != nil && n.run.projection.ID == x.Projection.ID && x.Projection.Generation < n.run.projection.Generation:
		return refusal(contract.EscrowRunStale, "the projection has a lower generation than that of the run held")
	}
	before := 0
	if n.run != nil {
		before = n.run.bytes
	} else if runs, _ := m.counts(); runs >= maximumRuns {
		return refusal(contract.RelayOverloaded, fmt.Sprintf("runs are held for %d nodes already", maximumRuns))
	}
	if m.held-before+sizeOf(x) > maximumHeldBytes {
		return refusal(contract.RelayOverloaded, fmt.Sprintf("the runs held would have more than %d bytes", maximumHeldBytes))
	}
	return nil
}

func refusal(name contract.RefusalName, reason string) *contract.Refusal {
	return &contract.Refusal{Name: name, Reason: reason}
}
