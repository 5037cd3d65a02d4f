package forward

import (
	"errors"
	"sync/atomic"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// peer is a socket that has forwarded a registration. It is known from then
// until its connection is gone, so that a custody drop reaches also what is
// about to end.
type peer struct {
	conn Conn
	sock *typedsocket.Socket

	// Guarded by Forward.mu.
	load          load
	strange       *strangersQueue    // nil when nothing is known to wait there
	answering     int                // requests released whose answer is not queued yet
	carried       [directions]uint64 // requests
	bytes         [directions]uint64 // of requests and answers, in the direction they went
	refused       uint64
	lastRefusal   contract.RefusalName
	lastRefusedAt time.Time
}

// idle reports whether nothing of the peer is in flight. The caller holds mu.
func (p *peer) idle() bool { return p.load.idle() && p.answering == 0 }

// rests reports whether nothing at all is in flight on the peer's socket, what
// other duties have asked of the node included. The caller holds mu.
func (p *peer) rests() bool { return p.idle() && p.sock.Stats().Pending == 0 }

// strangersQueue is what a socket has in flowOfStrangers on one socket to Cloudly.
type strangersQueue struct {
	to *typedsocket.Socket
	// waiting counts what has not left. What is dropped before stays counted: its
	// socket to Cloudly is not sent on any more then, or that of the node is cut.
	waiting atomic.Int32
}

// queueTo returns the queue in flowOfStrangers that the peer's next request waits
// in, nil when it goes in the node's own flow: the peer is bound, and nothing that
// it sent before is still among strangers', so that requests of one node keep
// their order. The caller holds mu.
func (p *peer) queueTo(upstream *typedsocket.Socket, bound bool) *strangersQueue {
	known := p.strange != nil && p.strange.to == upstream
	if bound && (!known || p.strange.waiting.Load() == 0) {
		p.strange = nil // it would keep a socket that has ended in memory
		return nil
	}
	if !known {
		p.strange = &strangersQueue{to: upstream}
	}
	return p.strange
}

// public returns a binding as other duties see it.
func public(b *binding[*peer]) Binding {
	return Binding{NodeID: b.node, Session: b.session, Socket: b.socket.sock, Confirmed: b.confirmed, Since: b.since}
}

// peerOf returns the socket's peer, and makes it known when it is not. The
// caller holds mu.
func (f *Forward) peerOf(conn Conn) *peer {
	sock := conn.Socket()
	p := f.peers[sock]
	if p == nil {
		p = &peer{conn: conn, sock: sock}
		f.peers[sock] = p
		go f.watch(p)
	}
	return p
}

// watch forgets a peer when its socket ends: what it was bound to at once, itself
// when nothing can leave on it any more.
func (f *Forward) watch(p *peer) {
	<-p.sock.Ending()
	f.mu.Lock()
	f.leave(p, departedItself)
	f.mu.Unlock()
	f.flush()
	<-p.sock.Done()
	f.mu.Lock()
	f.table.end(p)
	delete(f.peers, p.sock)
	f.mu.Unlock()
	signal(f.settled)
}

// leave unbinds a socket that is about to end. The caller holds mu.
func (f *Forward) leave(p *peer, why departure) {
	if node := f.table.leave(p); node != "" {
		f.tableChanged()
		f.unbound(p, node, why)
	}
}

// unbound tells that a node lost its binding. The caller holds mu.
func (f *Forward) unbound(p *peer, node string, why departure) {
	f.metrics.unbound.Of(why).Inc()
	fields := []field.Field{field.Node(node), field.Reason(why.String())}
	var end *typedsocket.EndError
	if why == departedItself && errors.As(p.sock.Err(), &end) {
		fields = append(fields, field.CloseCode(end.Code))
	}
	f.publish(NodeUnbound, fields...)
	if f.cfg.OnUnbound != nil {
		f.later(func() { f.cfg.OnUnbound(node) })
	}
}
