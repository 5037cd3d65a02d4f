package forward

import (
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// CloudlyRequest serves a request of Cloudly that no other duty serves: a push
// for the node that its session names. It ends the request, now or with its
// answer, and does not block.
func (f *Forward) CloudlyRequest(r *typedsocket.Request) {
	rt, refused := f.routes.find(down, r.Method())
	if rt.secretRequest {
		r.Erase()
	}
	body := r.Facts()
	v := f.lookFor(string(body.SessionNodeID), r.Socket())
	if refused == nil {
		refused = judgePush(body, v.holder, v.state)
	}
	if refused == nil {
		refused = f.sendDown(r, rt, v)
	}
	if refused != nil {
		var sock *typedsocket.Socket
		if v.binding != nil {
			sock = v.binding.socket.sock
		}
		f.refuse(down, sock, rt, v.holder.node, refused, r)
	}
}

// lookFor returns what is known of a node, for a request that came on a socket
// of Cloudly.
func (f *Forward) lookFor(node string, from *typedsocket.Socket) view {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := view{
		state:   state{attached: f.table.attached && from == f.upstream, draining: f.draining},
		epoch:   f.table.epoch,
		binding: f.table.bindings[node],
	}
	v.holder.take(v.binding)
	return v
}

// sendDown sends a push on that has been judged, or returns why not.
func (f *Forward) sendDown(r *typedsocket.Request, rt route, v view) *contract.Refusal {
	c := &carried{
		f: f, p: v.binding.socket, from: r.Socket(), to: v.binding.socket.sock, route: rt, node: v.binding.node, body: len(r.Body()), begun: time.Now(), epoch: v.epoch,
		cost: cost{direction: down, bytes: r.Size()},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if refused := f.changed(v, f.table.bindings[c.node]); refused != nil {
		return refused
	}
	return f.sendLocked(c, r)
}
