package forward

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// NodeRequest serves a request that arrived on the node listener, on a socket
// that is unbound or a node's. It ends the request, now or with its answer, and
// does not block.
func (f *Forward) NodeRequest(conn Conn, r *typedsocket.Request) {
	rt, refused := f.routes.find(up, r.Method())
	if rt.secretRequest {
		r.Erase()
	}
	v := f.look(conn)
	if refused == nil {
		refused = judgeNodeRequest(rt, r.Facts(), v.holder, v.state)
	}
	if refused == nil {
		refused = f.sendUp(conn, r, rt, v)
	}
	if refused != nil {
		f.refuse(up, conn.Socket(), rt, v.holder.node, refused, r)
	}
}

// view is what a request is judged by, and what must still be so when it is
// sent on.
type view struct {
	holder  holder
	state   state
	binding *binding[*peer]
	epoch   uint64
}

// look returns what is known of a node's socket.
func (f *Forward) look(conn Conn) view {
	role, bound := conn.Role(), conn.Bound()
	f.mu.Lock()
	defer f.mu.Unlock()
	v := view{state: state{attached: f.table.attached, draining: f.draining}, epoch: f.table.epoch}
	v.holder.foreign = role != RoleNode && role != RoleUnbound
	if p := f.peers[conn.Socket()]; p != nil {
		v.binding = f.table.bound(p)
		v.holder.node = f.table.belongs(p)
	}
	if v.holder.node == "" {
		v.holder.node = bound // a binding that is gone, on a socket that stays the node's
	}
	v.holder.take(v.binding)
	return v
}

// take fills in what is known of the binding, nil for none.
func (h *holder) take(b *binding[*peer]) {
	if b != nil {
		h.node, h.session, h.confirmed = b.node, b.session.Received, b.confirmed
	}
}

// changed refuses a request when what it was judged by is not so any more. now
// is the binding as it stands. The caller holds mu.
func (f *Forward) changed(v view, now *binding[*peer]) *contract.Refusal {
	switch {
	case f.draining || v.epoch != f.table.epoch:
		return refusal(contract.RelayNotReady, "the session to Cloudly changed, or the relay is about to stop")
	case !v.binding.same(now):
		return refusal(contract.RelayNodeSessionNotCurrent, "the node's session changed meanwhile")
	}
	return nil
}

// sendUp sends a request on that has been judged, or returns why not.
func (f *Forward) sendUp(conn Conn, r *typedsocket.Request, rt route, v view) *contract.Refusal {
	c := &carried{
		f: f, route: rt, node: v.holder.node, body: len(r.Body()), begun: time.Now(), epoch: v.epoch,
		cost: cost{direction: up, bytes: r.Size()},
	}
	if rt.registers {
		c.node = string(r.Facts().NodeID)
		c.registration = &registration{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c.p = f.peerOf(conn)
	now := f.table.bound(c.p)
	judgedBy := now
	if rt.registers {
		judgedBy = v.binding // nothing: claim looks whose the socket is
	}
	if refused := f.changed(v, judgedBy); refused != nil {
		return refused
	}
	c.cost.stranger = now == nil
	if rt.registers {
		var ok bool
		if c.registration.ticket, ok = f.table.claim(c.p, c.node); !ok {
			return refusal(contract.RelayNodeSessionNotCurrent, "this socket belongs to another node, or is about to end")
		}
	}
	c.from, c.to = c.p.sock, f.upstream
	c.queue = c.p.queueTo(c.to, now != nil)
	refused := f.sendLocked(c, r)
	if refused != nil && rt.registers {
		f.table.settle(c.registration.ticket)
	}
	return refused
}

// sendLocked admits a request and hands it to the socket it goes out on. The
// caller holds mu.
func (f *Forward) sendLocked(c *carried, r *typedsocket.Request) *contract.Refusal {
	if refused := f.total.admit(&c.p.load, c.cost); refused != nil {
		return refused
	}
	if c.queue != nil {
		c.queue.waiting.Add(1) // before it can leave
	}
	if err := r.Forward(c.to, c.forward()); err != nil {
		if c.queue != nil {
			c.queue.waiting.Add(-1)
		}
		f.total.release(&c.p.load, c.cost)
		if refused := refusalOf(c.cost.direction, err); refused != nil {
			return refused
		}
		return refusal(contract.RelayNotReady, "the request could not be sent")
	}
	d := c.cost.direction
	c.p.carried[d]++
	c.p.bytes[d] += uint64(c.body)
	f.metrics.bytes.Of(d).Add(uint64(c.body))
	f.gaugeLocked()
	return nil
}

// refuse answers a request with a refusal, and counts it. node is the node
// concerned, as far as it is known.
func (f *Forward) refuse(d direction, sock *typedsocket.Socket, rt route, node string, refused *contract.Refusal, r *typedsocket.Request) {
	f.metrics.refused.Of(d, labelOf(refused.Name)).Inc()
	fields := []field.Field{d.field(), field.Refusal(refused.Name)}
	if rt.method != "" { // otherwise it is the peer's text
		fields = append(fields, field.Method(rt.method))
	}
	if node != "" {
		fields = append(fields, field.Node(node))
	}
	f.cfg.Log.Info("request-refused", fields...)
	f.note(sock, refused.Name, fields)
	r.Refuse(refused.Text(), refused.AppendData(nil))
}

// note keeps the name of a refusal for the status.
func (f *Forward) note(sock *typedsocket.Socket, name contract.RefusalName, fields []field.Field) {
	now := f.cfg.Wall()
	f.mu.Lock()
	if p := f.peers[sock]; p != nil {
		p.refused++
		p.lastRefusal, p.lastRefusedAt = name, now
	}
	tell := false
	if name == contract.RelayOverloaded {
		if tell = f.overload.note(now); tell {
			f.publish(NodeOverloaded, fields...)
		}
	}
	f.mu.Unlock()
	if tell {
		f.flush()
	}
}
