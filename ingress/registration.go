package ingress

import (
	"context"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// Register serves registerClusterIngress on a socket of the listener (contract
// §11.2). Its memory is zeroed: it bears a secret.
func (i *Ingress) Register(conn Conn, r *typedsocket.Request) {
	r.Erase()
	var nodeID string
	var refused refusing
	var why registrationEnd
	switch conn.Role() {
	case RoleUnbound, RoleIngress:
		nodeID, refused, why = judgeRegistration(i.cfg.Offer, r.Body())
	default:
		refused, why = refusal(contract.ClusterIngressNotRegistered, "one socket has one role"), registrationForeign
	}
	if refused == nil {
		refused, why = i.forward(conn, r, nodeID)
	}
	if refused != nil {
		i.metrics.registrations.Of(why).Inc()
		i.cfg.Log.Info("ingress-registration-refused", field.Node(nodeID), field.Outcome(why.String()))
		refuse(r, refused)
	}
}

// TurnAway refuses a registration that the listener does not hand over: the relay
// stops, too much is in flight on its socket, or it is too large. An ingress reads
// every refusal but that of the protocol in the one form of contract §11.2.
func (i *Ingress) TurnAway(r *typedsocket.Request, name contract.RefusalName) {
	r.Erase()
	refused, why := refusing(ownRefusal(contract.IngressNotReady)), registrationNotReady
	switch name {
	case contract.RelayOverloaded:
		why = registrationOverloaded
	case frameTooLarge:
		refused, why = tooLarge(), registrationInvalid
	}
	i.metrics.registrations.Of(why).Inc()
	i.cfg.Log.Info("ingress-registration-refused", field.Outcome(why.String()))
	refuse(r, refused)
}

// registration is one that waits for Cloudly.
type registration struct {
	i        *Ingress
	p        *peer
	r        *typedsocket.Request
	ticket   ticket[*peer]
	upstream *typedsocket.Socket
	settled  bool // guarded by Ingress.mu
}

// forward sends a registration on that has been judged, or returns why not.
func (i *Ingress) forward(conn Conn, r *typedsocket.Request, nodeID string) (refusing, registrationEnd) {
	i.mu.Lock()
	p, fresh := i.peerOf(conn)
	x := &registration{i: i, p: p, r: r, upstream: i.upstream}
	refused, why := i.admit(x, nodeID)
	if refused == nil {
		i.registering++
		i.run(r, x.carry)
	}
	i.mu.Unlock()
	if fresh {
		conn.OnClose(func() { i.left(p) })
	}
	return refused, why
}

// admit claims the socket for a registration. The caller holds mu.
func (i *Ingress) admit(x *registration, nodeID string) (refusing, registrationEnd) {
	switch {
	case i.draining || !i.roles.attached:
		return ownRefusal(contract.IngressNotReady), registrationNotReady
	case i.registering >= maxRegistrations || i.roles.pending(x.p) >= maxRegistrationsOfOne:
		return ownRefusal(contract.IngressNotReady), registrationOverloaded
	}
	var ok bool
	if x.ticket, ok = i.roles.claim(x.p, nodeID); !ok {
		return invalidRegistration("nodeId: is not the node this socket belongs to"), registrationInvalid
	}
	return nil, 0
}

// peerOf returns the socket's peer, and makes it known when it is not. The caller
// holds mu and, for a fresh one, asks the Conn for its end.
func (i *Ingress) peerOf(conn Conn) (p *peer, fresh bool) {
	sock := conn.Socket()
	if p = i.peers[sock]; p != nil {
		return p, false
	}
	p = &peer{conn: conn, sock: sock, giveUp: func() {}}
	p.ctx, p.end = context.WithCancel(i.crew.ctx)
	i.peers[sock] = p
	return p, true
}

// left forgets a socket that begins to end.
func (i *Ingress) left(p *peer) {
	i.mu.Lock()
	p.end()
	if i.peers[p.sock] == p {
		delete(i.peers, p.sock)
	}
	if node := i.roles.end(p); node != "" {
		i.publish(IngressLeft, field.Node(node), codeOf(p.sock.Err()))
	}
	i.mu.Unlock()
	i.flush()
}

// flowOf is the flow of what an ingress sends on the socket to Cloudly, its
// registration and its counters: one of each ingress, so that none keeps another
// back, and an end of custody takes both back. The name is no node's.
func flowOf(nodeID string) string { return "ingress:" + nodeID }

// carry asks Cloudly and answers the ingress. The carrier's own way of forwarding
// is not enough here, since an acceptance goes back with another offer (contract
// O16). When Cloudly asks for a retry within that time, the same body is sent again.
func (x *registration) carry() {
	defer x.settle()
	if !x.current() { // this goroutine began late
		x.refuse(registrationNotReady, ownRefusal(contract.IngressNotReady))
		return
	}
	ctx, cancel := context.WithTimeout(x.p.ctx, contract.ForwardTimeout)
	defer cancel()
	answer, err := x.upstream.Call(ctx, contract.MethodRegisterIngress, x.r.Body(), typedsocket.CallOptions{
		Timeout: contract.ForwardTimeout, Flow: flowOf(x.ticket.node), Erase: true, Refused: x.declined,
	})
	if err != nil {
		x.fail(err)
		typedsocket.EraseRefusal(err)
		return
	}
	accepted, err := contract.ReadIngressAccepted(answer.Response())
	answer.Release()
	if err != nil {
		x.i.mu.Lock()
		x.i.publish(IngressAnswerRefused, field.Node(x.ticket.node), field.Error(err))
		x.i.mu.Unlock()
		x.i.flush()
		x.end(registrationMisanswered, x.r.Fail)
		return
	}
	x.accept(accepted)
}

// current reports whether an acceptance could still hold anything.
func (x *registration) current() bool {
	x.i.mu.Lock()
	defer x.i.mu.Unlock()
	return x.i.roles.current(x.ticket)
}

// declined looks at a refusal where it is read, before anything behind it.
func (x *registration) declined(refused *typedsocket.RemoteError) {
	if told := x.i.cfg.OnStaleCredential; told != nil && contract.IsForwardedCustodyRefusal(refused.Data) {
		told(x.upstream, refused.Data)
	}
}

// settle ends the registration. It is called before the answer leaves: who keeps
// to the bounds must not be refused because the next request comes right behind.
func (x *registration) settle() {
	x.i.mu.Lock()
	defer x.i.mu.Unlock()
	if x.settled {
		return
	}
	x.settled = true
	x.i.registering--
	x.i.roles.settle(x.ticket)
}

// end counts how the registration ended, and answers it.
func (x *registration) end(how registrationEnd, answer func() error) {
	x.settle()
	x.i.metrics.registrations.Of(how).Inc()
	if how != registrationAccepted {
		x.i.cfg.Log.Info("ingress-registration-refused", field.Node(x.ticket.node), field.Outcome(how.String()))
	}
	answer()
}

// refuse refuses it.
func (x *registration) refuse(how registrationEnd, with refusing) {
	x.end(how, func() error { refuse(x.r, with); return nil })
}

// accept takes an acceptance over: when the answer leaves, the socket is the
// ingress of its node.
func (x *registration) accept(accepted contract.IngressAccepted) {
	older, void := x.bind(x.i.cfg.Wall())
	if older != nil {
		// Not Close, which would still send what is queued.
		older.end()
		older.sock.Cut(typedsocket.CloseSuperseded, typedsocket.CloseSuperseded.Meaning())
	}
	x.i.flush()
	if void != nil {
		x.refuse(registrationVoid, void)
		return
	}
	answer := contract.IngressAccepted{Revision: accepted.Revision, Protocol: x.i.cfg.Offer}.AppendJSON(nil)
	x.end(registrationAccepted, func() error { return x.r.Answer(answer) })
	x.catchUp(accepted.Revision)
}

// bind gives the socket its role, or returns why the acceptance came to nothing.
// older is a socket that has to go.
func (x *registration) bind(now time.Time) (older *peer, void refusing) {
	i, p, node := x.i, x.p, field.Node(x.ticket.node)
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.roles.current(x.ticket) {
		i.publish(IngressRegistrationVoid, node)
		return nil, ownRefusal(contract.IngressNotReady)
	}
	if err := p.conn.BindIngress(x.ticket.node); err != nil {
		i.publish(IngressRegistrationVoid, node, field.Error(err))
		return nil, invalidRegistration("body: this socket took another role, or is about to end")
	}
	how, older := i.roles.accept(x.ticket)
	p.since, p.accepted = now, p.accepted+1
	i.metrics.accepted.Of(how).Inc()
	if how != acceptedAgain { // which an ingress may bring about as often as it likes
		i.publish(IngressRegistered, node, field.Outcome(how.String()))
	}
	return older, nil
}

// catchUp tells the ingress of a table that came while Cloudly judged.
func (x *registration) catchUp(known *int64) {
	x.i.mu.Lock()
	defer x.i.mu.Unlock()
	if held := revisionOf(x.i.table); held > 0 && (known == nil || *known < held) {
		x.i.hint(x.p, held)
	}
}

// noteRefusal keeps the name of a refusal of Cloudly's for the status.
func (i *Ingress) noteRefusal(nodeID string, reason contract.RefusalName, retry time.Duration) {
	now := i.cfg.Wall()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refused = &Refusal{Node: nodeID, Reason: reason, RetryAfterMs: retry.Milliseconds(), At: now.UTC()}
}
