package forward

import (
	"time"

	"serve.zone/relay/contract"
)

// table says which node is bound to which socket, and with which session. It is
// a state machine without time or I/O: its owner tells it what happened and does
// what it returns. S stands for a socket.
//
//	event     what it changes
//	attach    a Cloudly session stands: every binding becomes unconfirmed
//	detach    it is gone: bindings stay, acceptances under way count for nothing
//	claim     a registration begins: the socket belongs to its node while it lasts
//	settle    it has ended, whatever way
//	accept    it was accepted: the node is bound to the socket, confirmed
//	leave     the socket is about to end: it is bound to nothing any more
//	end       the socket has ended
//	drop      custody has ended: nothing is bound, and no socket can be
//
// A socket belongs to one node: the one it is bound to, or while it is bound to
// none, the one of its registrations in flight. A node has at most one binding,
// and its socket is not about to end.
type table[S comparable] struct {
	attached bool
	epoch    uint64 // counts attach, detach and drop
	bindings map[string]*binding[S]
	seats    map[S]*seat
}

// binding is a node's session and the socket whose registration produced it. It
// is never changed but for confirmed: a new acceptance makes a new one.
type binding[S comparable] struct {
	node      string
	session   contract.SessionBinding
	socket    S
	confirmed bool // obtained from the Cloudly session that stands, or stood last
	since     time.Time
	moves     int // how often the node came over a new socket while bound to another
}

// same reports whether a binding, nil for none, stands as it did: a replay makes a
// new one that differs in since alone.
func (b *binding[S]) same(now *binding[S]) bool {
	if b == nil || now == nil {
		return b == now
	}
	return b.socket == now.socket && b.node == now.node && b.confirmed == now.confirmed &&
		string(b.session.Received) == string(now.session.Received)
}

// seat is a socket that has asked for a registration.
type seat struct {
	node    string // it belongs to this node; "" for none
	pending int    // registrations in flight
	bound   bool
	leaving bool
}

// ticket is one registration in flight.
type ticket[S comparable] struct {
	socket S
	node   string
	epoch  uint64
}

// acceptance says how an accepted registration changed what was held.
type acceptance uint8

const (
	acceptedFirst     acceptance = iota // the node had no binding
	acceptedReplay                      // same socket, same session, confirmed as it was
	acceptedConfirmed                   // same socket, same session, confirmed by a new Cloudly session
	acceptedRotation                    // same socket, another session
	acceptedNewer                       // another socket: the older one has to go
	numAcceptances                      // how many there are
)

func (a acceptance) String() string {
	return [numAcceptances]string{"first", "replay", "confirmed", "rotation", "newer-socket"}[a]
}

func newTable[S comparable]() *table[S] {
	return &table[S]{bindings: map[string]*binding[S]{}, seats: map[S]*seat{}}
}

// attach begins a Cloudly session on a new socket and returns how many bindings
// are now unconfirmed.
func (t *table[S]) attach() int {
	t.attached = true
	t.epoch++
	for _, b := range t.bindings {
		b.confirmed = false
	}
	return len(t.bindings)
}

// detach ends it.
func (t *table[S]) detach() {
	t.attached = false
	t.epoch++
}

// claim begins a registration. It is refused for a socket that belongs to
// another node or is about to end.
func (t *table[S]) claim(s S, node string) (ticket[S], bool) {
	st := t.seats[s]
	if st == nil {
		st = &seat{}
		t.seats[s] = st
	}
	if st.leaving || st.node != "" && st.node != node {
		return ticket[S]{}, false
	}
	st.node = node
	st.pending++
	return ticket[S]{socket: s, node: node, epoch: t.epoch}, true
}

// settle ends a registration.
func (t *table[S]) settle(k ticket[S]) {
	st := t.seats[k.socket]
	if st == nil {
		return
	}
	st.pending--
	if st.pending == 0 && !st.bound {
		st.node = ""
	}
}

// accept binds the node of a registration in flight to its socket. older is the
// socket it was bound to before, when that is another one: it is about to end.
// It reports false, and changes nothing, when the registration belongs to a
// Cloudly session that is gone, or its socket is about to end.
func (t *table[S]) accept(k ticket[S], session contract.SessionBinding, now time.Time) (how acceptance, older S, ok bool) {
	if !t.acceptable(k) {
		return 0, older, false
	}
	st := t.seats[k.socket]
	next := &binding[S]{node: k.node, session: session, socket: k.socket, confirmed: true, since: now}
	if held := t.bindings[k.node]; held != nil {
		next.moves = held.moves
		switch {
		case held.socket != k.socket:
			how, older = acceptedNewer, held.socket
			next.moves++
			t.leave(older)
		case string(held.session.Received) != string(session.Received):
			how = acceptedRotation
		case held.confirmed:
			how = acceptedReplay
		default:
			how = acceptedConfirmed
		}
	}
	st.bound = true
	t.bindings[k.node] = next
	return how, older, true
}

// acceptable reports whether accept would take an acceptance now.
func (t *table[S]) acceptable(k ticket[S]) bool {
	st := t.seats[k.socket]
	return t.attached && k.epoch == t.epoch && st != nil && !st.leaving
}

// leave unbinds a socket that is about to end. It returns the node that has no
// binding any more, "" for none.
func (t *table[S]) leave(s S) string {
	st := t.seats[s]
	if st == nil {
		return ""
	}
	was := st.bound
	st.bound, st.leaving = false, true
	if !was {
		return ""
	}
	delete(t.bindings, st.node)
	return st.node
}

// end forgets a socket that has ended. It returns what leave does.
func (t *table[S]) end(s S) string {
	node := t.leave(s)
	delete(t.seats, s)
	return node
}

// drop ends custody. It returns every binding that was held; all sockets that
// are known are about to end.
func (t *table[S]) drop() []*binding[S] {
	dropped := make([]*binding[S], 0, len(t.bindings))
	for _, b := range t.bindings {
		dropped = append(dropped, b)
	}
	for s := range t.seats {
		t.leave(s)
	}
	t.detach()
	return dropped
}

// bound returns the binding that this very socket holds, nil for none.
func (t *table[S]) bound(s S) *binding[S] {
	if st := t.seats[s]; st != nil && st.bound {
		return t.bindings[st.node]
	}
	return nil
}

// belongs returns the node a socket belongs to, "" for none.
func (t *table[S]) belongs(s S) string {
	if st := t.seats[s]; st != nil {
		return st.node
	}
	return ""
}

// unconfirmed returns how many bindings are not confirmed.
func (t *table[S]) unconfirmed() int {
	n := 0
	for _, b := range t.bindings {
		if !b.confirmed {
			n++
		}
	}
	return n
}

// recallable returns the unconfirmed binding whose socket is to be closed next,
// in the order of node ids, nil for none. One with a registration in flight is
// passed over unless forced.
func (t *table[S]) recallable(forced bool) *binding[S] {
	var next *binding[S]
	for _, b := range t.bindings {
		if b.confirmed || next != nil && next.node < b.node {
			continue
		}
		if forced || t.seats[b.socket].pending == 0 {
			next = b
		}
	}
	return next
}
