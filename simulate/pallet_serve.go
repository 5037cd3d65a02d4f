package simulate

import (
	"slices"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// early is a push that came while a registration was not answered yet, under a
// session that may be the one it is answered with.
type early struct {
	link    *link
	request *typedsocket.Request
	step    Step
}

// serve judges one push and ends it as the script says.
func (p *Pallet) serve(k *link, r *typedsocket.Request) {
	step := p.script.next(r.Method())
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.watch.notify()
	// The carrier's reader may be here before the goroutine that waits for the
	// registration's answer: such a push waits for it. Their number is bounded by
	// the carrier.
	if p.inFlight && !p.current(k, r) {
		p.early = append(p.early, early{k, r, step})
		return
	}
	p.judgePush(k, r, step)
}

// serveEarly serves what waited for a registration.
func (p *Pallet) serveEarly() {
	waiting := p.early
	p.early = nil
	for _, e := range waiting {
		p.judgePush(e.link, e.request, e.step)
	}
}

func (p *Pallet) dropEarly() {
	for _, e := range p.early {
		e.request.Drop()
	}
	p.early = nil
}

// current reports whether the push is under the session that the node holds on
// this very socket.
func (p *Pallet) current(k *link, r *typedsocket.Request) bool {
	return p.bound != nil && p.line.link == k && contract.EqualJSON(r.Facts().Session, p.bound.Received)
}

func (p *Pallet) judgePush(k *link, r *typedsocket.Request, step Step) {
	method := r.Method()
	refusal, isPush := p.judgeSession(k, r)
	v := p.scripted(step, r.Body())
	switch {
	case !step.judged():
	case !isPush:
		v = noSuchMethod()
	case refusal != "":
		v = refuseText(refusal)
	default:
		v = p.take(k, method, r.Body())
	}
	p.deliver(r, k.conn, step, v, nil)
}

// judgeSession notes what a relay must not let through, and says why the node
// refuses it (contract §7.3, §8).
func (p *Pallet) judgeSession(k *link, r *typedsocket.Request) (refusal string, isPush bool) {
	method := r.Method()
	m, known := contract.LookupMethod(method)
	if !(known && m.Takes(contract.RelayToNode)) && !slices.Contains(p.cfg.PushMethods, method) {
		p.violated(NotForNode, k.number, method)
		return "", false
	}
	switch {
	case r.Facts().Session == nil:
		p.violated(WithoutSession, k.number, method)
		return "the request carries no session", true
	case !p.current(k, r):
		p.violated(ForeignSession, k.number, method)
		return "the session is not this node's current one", true
	}
	return "", true
}

// take is the node's answer to a push under its session. Each asserts durable
// admission and no more (contract §7.3).
func (p *Pallet) take(k *link, method string, body []byte) verdict {
	status := compose().text("status", "accepted")
	switch method {
	case contract.MethodApplyDNSLeaseRenewal:
		return p.takeRenewal(k, body)
	case "applyRuntimeLocalStorageClaim":
		o := readObject(method+" request", body, []string{"session", "claim"})
		if err := o.err(); err != nil {
			return refused(err)
		}
		status.text("state", "pending").value("claim", o.members["claim"])
	case "readRuntimeAssignmentStats":
		o := readObject(method+" request", body, []string{"session", "assignment"})
		if err := o.err(); err != nil {
			return refused(err)
		}
		status = compose().text("status", "not-running").value("assignment", o.members["assignment"])
	}
	return accepted(status.end())
}
