package ingress

import (
	"time"

	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// SessionRegistered tells that Cloudly accepted a registration of the relay on the
// socket. One repeated on the same socket changes nothing.
func (i *Ingress) SessionRegistered(sock *typedsocket.Socket) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.roles.attached && i.upstream == sock {
		return
	}
	i.upstream, i.resume = sock, time.Time{}
	i.roles.attach()
}

// SessionLost tells that the session to Cloudly is gone. Table and roles stay, and
// the table is served from memory (contract §11.3). The socket is remembered: it
// may still hold a registration when custody ends.
func (i *Ingress) SessionLost() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.roles.detach()
	i.resume = time.Time{}
}

// Suspend tells that a refusal was read on a socket to Cloudly that ends custody;
// in an outage, that is a socket on which no registration was accepted yet. From
// when it returns no table, registration or hint is begun, until DropCustody,
// SessionLost or the next registration, or until suspendWait has passed: a name may
// be heard that ends nothing. A socket other than that of the standing session
// changes nothing. It does not wait.
func (i *Ingress) Suspend(sock *typedsocket.Socket) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.roles.attached && i.upstream != sock {
		return
	}
	i.roles.detach()
	i.resume = time.Now().Add(suspendWait)
}

// DropCustody zeroes the table, takes every role away, cuts every socket that
// forwarded a registration, and takes back what Cloudly's socket holds of them.
// When it returns nothing of the old custody leaves any more (contract §6.2). It
// waits for what is being answered at that moment, and a quarter of a second at
// most for Cloudly's socket, which is cut when it takes longer. It does not wait for
// a pushed table that is being judged: that one is zeroed when it was. why is the
// name of the refusal that ended custody.
func (i *Ingress) DropCustody(why string) {
	i.mu.Lock()
	old := i.crew
	i.crew = newCrew()
	upstream := i.upstream
	i.upstream, i.resume = nil, time.Time{}
	dropped, table := i.roles.drop(), i.table
	i.table, i.refused = nil, nil
	idle := i.discard(table)
	sockets := make([]*typedsocket.Socket, 0, len(i.peers))
	for sock := range i.peers {
		sockets = append(sockets, sock)
	}
	clear(i.peers)
	waiting := i.pushes
	i.pushes = nil
	if dropped > 0 || table != nil {
		i.publish(IngressesDropped, field.Count(dropped), field.Revision(revisionOf(table)), field.Reason(why))
	}
	i.mu.Unlock()

	old.cancel()
	for _, x := range waiting {
		i.metrics.tables.Of(pushed, tableNotReady).Inc()
		refuse(x.r, notReady())
	}
	for _, sock := range sockets {
		sock.Cut(typedsocket.CloseCustodyEnded, typedsocket.CloseCustodyEnded.Meaning())
	}
	if idle {
		table.zero()
	}
	i.rest()
	old.running.Wait()
	if upstream != nil {
		upstream.DropFlows(typedsocket.CloseCustodyEnded, "custody ended")
	}
	i.flush()
}

// suspended reports whether custody may be about to end. The caller holds mu.
func (i *Ingress) suspended() bool { return time.Now().Before(i.resume) }

// rest waits until no answer is being made of a table.
func (i *Ingress) rest() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.serving > 0 {
		i.served.Wait()
	}
}
