package escrow

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// Hold serves holdRuntimeNetworkDnsLeaseRenewals as it came on the registered
// socket to Cloudly. It ends the request and does not block.
func (e *Escrow) Hold(r *typedsocket.Request) {
	held, refused := e.hold(r.Body())
	if refused != nil {
		r.Refuse(refused.Text(), refused.AppendData(nil))
		return
	}
	r.Answer(contract.HoldDNSLeaseRenewalsAnswer{Held: int64(held)}.AppendJSON(nil))
}

// hold judges the body of a hold. What costs time is done without the lock.
func (e *Escrow) hold(body []byte) (held int, refused *contract.Refusal) {
	x, alone := contract.AdmitHoldDNSLeaseRenewalsRequest(body)
	e.step(func(m *machine, at instant) {
		if held, refused = m.hold(at, x, alone); refused == nil {
			e.metrics.holds.Of(answeredBy(held)).Inc()
			return
		}
		by := refusedBy(refused.Name)
		e.metrics.holds.Of(by).Inc()
		if n := e.refused.count(by, at.mono); n > 0 {
			m.tell(HoldRefused, field.Refusal(refused.Name), field.Node(x.NodeID), field.Count(n))
		}
	})
	return held, refused
}

func answeredBy(held int) holdOutcome {
	if held == 0 {
		return holdEmptied
	}
	return holdReplaced
}

// Bound tells of an accepted registration of a node. It does not block.
func (e *Escrow) Bound(b Binding) { e.step(func(m *machine, at instant) { m.bound(at, b) }) }

// Unbound tells of a node that has no binding any more. It does not block.
func (e *Escrow) Unbound(nodeID string) {
	e.step(func(m *machine, at instant) { m.unbound(at, nodeID) })
}

// SessionRegistered tells that Cloudly accepted a registration of the relay. From
// when it returns no push begins, and those in flight are recalled: what was sent may
// still be acknowledged. One that is told again while the session stands changes
// nothing. It does not block.
func (e *Escrow) SessionRegistered() {
	e.step(func(m *machine, at instant) { m.registered(at) })
}

// SessionLost tells that the session to Cloudly is gone: what is due is pushed at
// once. It does not block.
func (e *Escrow) SessionLost() { e.step(func(m *machine, at instant) { m.lost(at) }) }

// Suspend tells that a refusal was read that ends custody. From when it returns no
// push begins, and those in flight are recalled; DropCustody, SessionRegistered or
// SessionLost follows. If none does within 5 s, it counts for nothing. It does not block.
func (e *Escrow) Suspend() { e.step(func(m *machine, at instant) { m.suspend(at) }) }

// step lets something happen, ends what it withdrew, and has the loop look again.
func (e *Escrow) step(happen func(m *machine, at instant)) {
	e.mu.Lock()
	happen(e.machine, e.now())
	e.withdraw()
	e.mu.Unlock()
	e.publish()
	signal(e.wake)
}

// withdraw recalls the pushes that the machine has withdrawn, and ends those whose
// answer it does not wait for. The caller holds mu.
func (e *Escrow) withdraw() {
	for p, f := range e.flights {
		if p.withdrawn {
			f.recall()
		}
		if p.over {
			f.cancel()
		}
	}
}

// publish publishes events in the order in which they happened, and judges the checks
// by what happened. When it returns, the events of its caller are published.
func (e *Escrow) publish() {
	e.tellMu.Lock()
	defer e.tellMu.Unlock()
	e.mu.Lock()
	all := e.machine.told
	e.machine.told = nil
	e.judge(e.cfg.Wall().UTC())
	e.mu.Unlock()
	if e.cfg.Events == nil {
		return
	}
	for _, x := range all {
		e.cfg.Events.Publish(x.event, x.fields...)
	}
}

// signal wakes who waits on a channel with room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// until returns how long it is until a monotonic time, never less than 0.
func (e *Escrow) until(mono time.Duration) time.Duration { return max(mono-time.Since(e.start), 0) }
