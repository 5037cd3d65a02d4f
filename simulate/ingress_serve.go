package simulate

import (
	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// serve judges one request of the relay and ends it as the script says.
func (i *Ingress) serve(k *link, r *typedsocket.Request) {
	step := i.script.next(r.Method())
	i.mu.Lock()
	defer i.mu.Unlock()
	defer i.watch.notify()
	// A relay gives a socket its role before the acceptance leaves, so that a hint
	// may overtake it: what comes meanwhile waits. Its number is bounded by the
	// carrier.
	if i.inFlight && i.bound != k {
		i.early = append(i.early, early{k, r, step})
		return
	}
	i.judgeRequest(k, r, step)
}

// serveEarly serves what waited for a registration.
func (i *Ingress) serveEarly() {
	waiting := i.early
	i.early = nil
	for _, e := range waiting {
		i.judgeRequest(e.link, e.request, e.step)
	}
}

func (i *Ingress) judgeRequest(k *link, r *typedsocket.Request, step Step) {
	method := r.Method()
	refusal, known := i.judgeRole(k, method)
	v := i.scripted(step, r.Body())
	switch {
	case !step.judged():
	case !known:
		v = noSuchMethod()
	case refusal != "":
		v = refuseText(refusal)
	default:
		v = i.take(k, method, r.Body())
	}
	i.deliver(r, k.conn, step, v, nil)
}

// judgeRole notes what a relay must not ask of this socket, and says why the
// ingress refuses it (contract §8.4, §11.3).
func (i *Ingress) judgeRole(k *link, method string) (refusal string, known bool) {
	m, found := contract.LookupMethod(method)
	switch {
	case !found || !m.Takes(contract.RelayToIngress):
		i.violated(NotForIngress, k.number, method)
		return "", false
	case i.bound != k:
		i.violated(BeforeAcceptance, k.number, method)
		return "the ingress is not registered on this socket", true
	}
	return "", true
}

// take is the ingress's answer to what it may be asked.
func (i *Ingress) take(k *link, method string, body []byte) verdict {
	if method == contract.MethodGetTrafficStatistics {
		return i.answerTraffic(k, body)
	}
	return i.takeHint(k, body)
}

// takeHint judges a hint, which carries the revision alone (contract §11.1). One
// that is not newer is ignored, and costs nothing.
func (i *Ingress) takeHint(k *link, body []byte) verdict {
	hint, err := contract.ReadRouteTableChanged(body)
	if err != nil {
		i.violated(HintBody, k.number, contract.MethodPushIngressRouteTableChanged)
		return refused(err)
	}
	i.seen.hinted = max(i.seen.hinted, hint.Revision)
	if hint.Revision > i.table.revision() {
		i.pullSoon()
	}
	return accepted(contract.Empty{})
}
