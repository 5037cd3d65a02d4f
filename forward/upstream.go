package forward

import (
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// UpstreamRegistered tells that Cloudly accepted a registration of the relay on
// the socket. One repeated on the same socket changes nothing; one on a new
// socket, or after an end of custody, makes every binding unconfirmed, until its
// node registers again (design §4, O9).
func (f *Forward) UpstreamRegistered(sock *typedsocket.Socket) {
	defer f.flush()
	f.recallMu.Lock()
	defer f.recallMu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tableChanged()
	if f.table.attached && f.upstream == sock {
		return
	}
	f.endRecall()
	f.upstream = sock
	if n := f.table.attach(); n > 0 {
		f.publish(NodesUnconfirmed, field.Count(n))
		if !f.draining {
			f.recall = make(chan struct{})
			go f.runRecall(sock, f.recall)
		}
	}
}

// Suspend tells that a refusal was read on the socket to Cloudly that ends
// custody. From when it returns nothing more is forwarded, in either direction;
// DropCustody or UpstreamLost follows. It calls no hook and does not wait. The
// socket is remembered, as UpstreamLost does.
func (f *Forward) Suspend(sock *typedsocket.Socket) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.upstream == sock && f.table.attached {
		f.table.detach()
		f.tableChanged()
	}
}

// UpstreamLost tells that the session to Cloudly is gone. What waits for an
// answer fails with its socket. Bindings stay, for escrow; no more sockets are
// closed when it returns. The socket is remembered: it may still send what nodes
// had queued when custody ends.
func (f *Forward) UpstreamLost() {
	defer f.flush()
	f.recallMu.Lock()
	defer f.recallMu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tableChanged()
	f.endRecall()
	if n := f.table.unconfirmed(); f.table.attached && n > 0 {
		f.publish(NodeRecallInterrupted, field.Count(n))
	}
	f.table.detach()
}

// DropCustody drops every binding, cuts every socket that forwarded anything, and
// takes back what Cloudly's socket holds of nodes, streams included. When it
// returns, nothing of the old custody leaves any more (contract §6.2). That takes
// a quarter of a second at most, when Cloudly does not read; its socket is cut
// then. why is the name of the refusal that ended custody.
//
// It must not be called by a hook.
func (f *Forward) DropCustody(why string) {
	f.recallMu.Lock()
	f.mu.Lock()
	f.endRecall()
	upstream := f.upstream
	f.upstream = nil
	dropped := f.table.drop()
	f.tableChanged()
	for _, b := range dropped {
		f.unbound(b.socket, b.node, departedCustody)
	}
	f.publish(NodesDropped, field.Count(len(dropped)), field.Reason(why))
	sockets := make([]*typedsocket.Socket, 0, len(f.peers))
	for sock := range f.peers {
		sockets = append(sockets, sock)
	}
	f.mu.Unlock()
	f.recallMu.Unlock()

	for _, sock := range sockets {
		sock.Cut(typedsocket.CloseCustodyEnded, "the relay no longer holds this cluster")
	}
	// An answer of a node that was judged before may not have reached Cloudly's
	// queue yet. What brings it there does not block.
	f.mu.Lock()
	for f.passing > 0 {
		f.passed.Wait()
	}
	f.mu.Unlock()
	if upstream != nil {
		upstream.DropFlows(typedsocket.CloseCustodyEnded, "custody ended")
	}
	f.flush()
}

// endRecall ends the recall that runs. The caller holds recallMu and mu.
func (f *Forward) endRecall() {
	if f.recall != nil {
		close(f.recall)
		f.recall = nil
	}
}
