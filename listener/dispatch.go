package listener

import (
	"fmt"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/typedsocket"
)

// ServeRequest hands a request to whom the table names, or refuses it by name.
// It is called by the socket's only reader.
func (c *Conn) ServeRequest(r *typedsocket.Request) {
	<-c.ready
	failpoint.Reach(failpoint.NodeRequestRead)
	l, role, method := c.l, c.currentRole(), r.Method()
	route := l.routes[role][method]
	switch {
	case l.leaving.Load():
		c.turnAway(r, route, outcomeNotReady, "the relay is leaving")
	case role == unbound && c.sock.Stats().Serving > unregisteredRequests:
		c.turnAway(r, route, outcomeOverloaded, fmt.Sprintf("%d requests are in flight before a registration", unregisteredRequests))
	case route.Serve == nil:
		o, reason := l.refusalOf(role, method)
		c.refuse(r, o, reason)
	case role == ingress && len(r.Body()) > contract.IngressRequestLimit:
		c.turnAway(r, route, outcomeTooLarge, fmt.Sprintf("%d bytes pass the limit of %d", len(r.Body()), contract.IngressRequestLimit))
	default:
		l.metrics.calls.Of(role, outcomeServed).Inc()
		route.Serve(c, r)
	}
}

// outcome is what became of a request: served, or the name it was refused by.
type outcome uint8

const (
	outcomeServed outcome = iota
	outcomeNotReady
	outcomeOverloaded
	outcomeTooLarge
	outcomeEscrowCloudlyOnly
	outcomeCloudlyOnly
	outcomeNotForwarded
	outcomeNoIngress
	outcomeNoSession
	outcomes // how many there are
)

var outcomeNames = [outcomes]contract.RefusalName{
	outcomeServed:            "served",
	outcomeNotReady:          contract.RelayNotReady,
	outcomeOverloaded:        contract.RelayOverloaded,
	outcomeTooLarge:          "frame-too-large", // the carrier's own name for it
	outcomeEscrowCloudlyOnly: contract.EscrowCloudlyOnly,
	outcomeCloudlyOnly:       contract.RelayCloudlyOnly,
	outcomeNotForwarded:      contract.RelayMethodNotForwarded,
	outcomeNoIngress:         contract.ClusterIngressNotRegistered,
	outcomeNoSession:         contract.RelayNodeSessionNotCurrent,
}

// String returns the outcome's name.
func (o outcome) String() string { return string(outcomeNames[o]) }

// refusalOf returns how a method is refused that sockets of a role may not
// send (contract §8.4, §11.3, O34). One that another role may send is refused by
// what this socket lacks.
func (l *Listener) refusalOf(r role, method string) (outcome, string) {
	known, _ := contract.LookupMethod(method)
	switch contract.ListenerRefusal(method) {
	case contract.EscrowCloudlyOnly:
		return outcomeEscrowCloudlyOnly, "only Cloudly sends this method"
	case contract.RelayCloudlyOnly:
		return outcomeCloudlyOnly, "only Cloudly sends this method"
	}
	switch {
	case r != ingress && (l.routes.serves(ingress, method) || known.Takes(contract.IngressToRelay)):
		return outcomeNoIngress, "this socket is no registered ingress"
	case r != node && (l.routes.serves(node, method) || known.Takes(contract.NodeToRelay)):
		return outcomeNoSession, "this socket has no registered session of a node"
	}
	return outcomeNotForwarded, ""
}

// turnAway ends a request that its route would serve at another time, in the form
// that the route has for it.
func (c *Conn) turnAway(r *typedsocket.Request, route Route, o outcome, reason string) {
	if route.Refuse == nil {
		c.refuse(r, o, reason)
		return
	}
	c.l.metrics.calls.Of(c.currentRole(), o).Inc()
	r.Erase()
	route.Refuse(r, outcomeNames[o])
}

// refuse ends a request by name. Its memory is zeroed: it may be a registration.
func (c *Conn) refuse(r *typedsocket.Request, o outcome, reason string) {
	c.l.metrics.calls.Of(c.currentRole(), o).Inc()
	refusal := contract.Refusal{Name: outcomeNames[o], Reason: reason}
	r.Erase()
	r.Refuse(refusal.Text(), refusal.AppendData(nil))
}
