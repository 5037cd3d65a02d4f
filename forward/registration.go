package forward

import (
	"errors"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// registration is what is kept of a registration in flight. Of its request that
// is the node alone (contract §7.1).
type registration struct {
	ticket ticket[*peer]
	// mismatch is set when the answer was not one to hold a binding by; the
	// socket is closed when the node has been told.
	mismatch bool
}

// errMismatch is an accepted registration whose answer bears no session that may
// be held for the node. The node gets a failure without a name.
var errMismatch = errors.New("the answer holds no session of this node under Cloudly")

// judgeRegistration takes an acceptance over: when it returns nil, the node is
// bound to the socket (contract §7.1 rules 3 to 5).
func (c *carried) judgeRegistration(response []byte) error {
	session, err := contract.ReadSessionBinding(response, c.node)
	if err != nil || len(session.Received) > maximumSession {
		return c.mismatch()
	}
	f, now := c.f, c.f.cfg.Wall()
	f.mu.Lock()
	if c.p.sock.Err() != nil {
		f.leave(c.p, departedItself)
	}
	if refused := c.bindLocked(); refused != nil {
		f.publish(NodeRegistrationVoid, field.Node(c.node))
		f.mu.Unlock()
		f.flush()
		return refused
	}
	how, older, _ := f.table.accept(c.registration.ticket, session, now)
	f.tableChanged()
	f.metrics.accepted.Of(how).Inc()
	if how != acceptedReplay { // which a node may ask for as often as it likes
		f.publish(NodeBound, field.Node(c.node), field.Outcome(how.String()))
	}
	if f.cfg.OnBound != nil {
		bound := public(f.table.bindings[c.node])
		f.later(func() { f.cfg.OnBound(bound) })
	}
	f.mu.Unlock()

	if older != nil {
		// Not Close, which would still send what is queued: that is addressed to
		// a session that may be fenced by now.
		older.sock.Cut(typedsocket.CloseSuperseded, "the node came over a newer socket")
	}
	signal(f.returned)
	f.flush()
	return nil
}

// bindLocked makes the socket the node's, or returns why the acceptance came to
// nothing. A socket gets its role only for a session that is then held: one with
// the role alone would have neither a session nor a time to register in. The
// caller holds mu.
func (c *carried) bindLocked() *contract.Refusal {
	if !c.f.table.acceptable(c.registration.ticket) {
		return refusal(contract.RelayNotReady, "the registration was accepted too late: register again")
	}
	if err := c.p.conn.BindNode(c.node); err != nil {
		return refusal(contract.RelayNodeSessionNotCurrent, "this socket took another role, or is about to end")
	}
	// Nothing the node sends after its answer may meet the stranger's bound.
	c.p.sock.SetFrameLimit(contract.NodeFrameLimit, contract.NodeFrameLimit)
	return nil
}

// mismatch makes the socket leave, and with it whatever it was bound to.
func (c *carried) mismatch() error {
	f := c.f
	f.mu.Lock()
	c.registration.mismatch = true
	f.publish(NodeAnswerRefused, field.Node(c.node))
	f.leave(c.p, departedMismatch)
	f.mu.Unlock()
	f.flush()
	return errMismatch
}
