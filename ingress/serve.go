package ingress

import (
	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// noTable is the answer while Cloudly has computed no table yet.
var noTable = contract.RouteTableAnswer{}.AppendJSON(nil)

// Table serves getClusterIngressRouteTable on a socket of the listener: the table
// that is held, whichever the ingress has (contract O15), to the registered ingress
// alone. It is served from memory and so also while Cloudly is away. The memory of
// the answer is zeroed when it has left.
func (i *Ingress) Table(conn Conn, r *typedsocket.Request) {
	r.Erase()
	_, malformed := contract.ReadIngressRouteTableRequest(r.Body())
	sock := conn.Socket()
	unread := sock.Stats().QueuedOwn

	i.mu.Lock()
	p := i.peers[sock]
	var refused *contract.Refusal
	how := servedTable
	switch {
	case p == nil || i.roles.node(p) == "":
		refused, how = noIngress(), servedForeign
	case i.suspended() || i.draining:
		refused, how = notReady(), servedNotReady
	case malformed != nil:
		refused, how = refusal(RequestInvalid, reasonsOf(malformed)), servedInvalid
	case unread > maxUnread:
		refused, how = refusal(contract.RelayOverloaded, "answers before this one were not read"), servedOverloaded
	}
	if refused != nil {
		i.mu.Unlock()
		i.metrics.served.Of(how).Inc()
		refuse(r, refused)
		return
	}
	h := i.use()
	p.pulls++
	p.pulled, p.pulledAt = revisionOf(h), i.cfg.Wall()
	i.mu.Unlock()

	defer i.done(h)
	if h == nil {
		i.metrics.served.Of(servedNone).Inc()
		r.Answer(noTable)
		return
	}
	i.metrics.served.Of(servedTable).Inc()
	i.metrics.servedBytes.Add(uint64(h.bytes()))
	r.Answer(h.answer) // which copies it
}
