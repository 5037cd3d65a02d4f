package ingress

import (
	"maps"
	"slices"
)

// roles says which socket speaks for the ingress of which node. It is a state
// machine without time or I/O: its owner tells it what happened and does what it
// returns. S stands for a socket.
//
//	event     what it changes
//	attach    a Cloudly session stands
//	detach    it is gone, or not to be used any more: acceptances under way count for nothing
//	claim     a registration begins: the socket belongs to its node while it lasts
//	settle    it has ended, whatever way
//	accept    it was accepted: the socket is the ingress of the node, instead of an older one
//	end       the socket begins to end: it has no role and can get none any more
//	drop      custody has ended: no socket that is known has a role, or can get one
//
// A socket belongs to one node: that of its role, or while it has none, that of
// its registrations in flight. A node has at most one ingress. Roles outlive the
// session to Cloudly (contract §11.3).
type roles[S comparable] struct {
	attached bool
	epoch    uint64 // counts attach, detach and drop
	holders  map[string]S
	seats    map[S]*seat
}

// seat is a socket that has asked for a registration.
type seat struct {
	node    string // it belongs to this node; "" for none
	pending int    // registrations in flight
	holds   bool   // it is the node's ingress
	leaving bool   // another took its place, and it is about to end
}

// ticket is one registration in flight.
type ticket[S comparable] struct {
	socket S
	node   string
	epoch  uint64
	seat   *seat // of the socket, as it was then
}

// acceptance says how an accepted registration changed what was held.
type acceptance uint8

const (
	acceptedFirst acceptance = iota // the node had no ingress
	acceptedAgain                   // the same socket
	acceptedNewer                   // another socket: the older one has to go
	acceptances                     // how many there are
)

var acceptanceNames = [acceptances]string{
	acceptedFirst: "first", acceptedAgain: "again", acceptedNewer: "newer-socket",
}

// String returns the acceptance's name.
func (a acceptance) String() string { return acceptanceNames[a] }

func newRoles[S comparable]() *roles[S] {
	return &roles[S]{holders: map[string]S{}, seats: map[S]*seat{}}
}

// attach begins a Cloudly session.
func (r *roles[S]) attach() {
	r.attached = true
	r.epoch++
}

// detach ends it.
func (r *roles[S]) detach() {
	r.attached = false
	r.epoch++
}

// claim begins a registration. It is refused for a socket that belongs to another
// node or is about to end.
func (r *roles[S]) claim(s S, node string) (ticket[S], bool) {
	st := r.seats[s]
	if st == nil {
		st = &seat{}
		r.seats[s] = st
	}
	if st.leaving || st.node != "" && st.node != node {
		return ticket[S]{}, false
	}
	st.node = node
	st.pending++
	return ticket[S]{socket: s, node: node, epoch: r.epoch, seat: st}, true
}

// pending returns how many registrations of a socket are in flight.
func (r *roles[S]) pending(s S) int {
	if st := r.seats[s]; st != nil {
		return st.pending
	}
	return 0
}

// settle ends a registration.
func (r *roles[S]) settle(k ticket[S]) {
	k.seat.pending--
	if k.seat.pending == 0 && !k.seat.holds {
		k.seat.node = ""
	}
}

// current reports whether a registration in flight may still be accepted: it
// belongs to the session that stands, and its socket is not about to end.
func (r *roles[S]) current(k ticket[S]) bool {
	return r.attached && k.epoch == r.epoch && r.seats[k.socket] == k.seat && !k.seat.leaving
}

// accept makes the socket of a registration that is current the ingress of its
// node. older is the socket that was it before, when that is another one: it is
// about to end.
func (r *roles[S]) accept(k ticket[S]) (how acceptance, older S) {
	if holder, held := r.holders[k.node]; held && holder != k.socket {
		how, older = acceptedNewer, holder
		st := r.seats[holder]
		st.holds, st.leaving = false, true
	} else if held {
		how = acceptedAgain
	}
	r.holders[k.node] = k.socket
	k.seat.holds = true
	return how, older
}

// end forgets a socket that begins to end. It returns the node that has no ingress
// any more, "" for none.
func (r *roles[S]) end(s S) string {
	node := r.node(s)
	if node != "" {
		delete(r.holders, node)
	}
	delete(r.seats, s)
	return node
}

// drop ends custody. It returns how many ingresses there were.
func (r *roles[S]) drop() int {
	dropped := len(r.holders)
	clear(r.holders)
	clear(r.seats)
	r.detach()
	return dropped
}

// node returns the node whose ingress the socket is, "" for none.
func (r *roles[S]) node(s S) string {
	if st := r.seats[s]; st != nil && st.holds {
		return st.node
	}
	return ""
}

// nodes returns the nodes that have an ingress, in order.
func (r *roles[S]) nodes() []string { return slices.Sorted(maps.Keys(r.holders)) }
