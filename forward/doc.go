// Package forward carries node sessions over the one socket to Cloudly, in both
// directions: who is bound to which socket, what passes, and in which direction
// (contract §7, §8; design §3, flows 1 and 2).
//
// # What it promises
//
// A request passes when its method may travel that way, and when it is the
// node's own: its session is the one the node obtained on this very socket, or,
// in a body without one, every nodeId is the node's. What does not pass is
// refused at once by name, as text "<name>: <reason>" and as data {code}, and
// nothing of it reaches the other side. Of what passes the bytes of `request`
// and `response` are neither decoded nor changed, and requests of one node keep
// their order. On the socket to Cloudly each node has a flow of its own;
// registrations of sockets that hold no binding have one together, whatever nodes
// they name.
//
// A registration is forwarded with nothing but its nodeId read. Its memory is
// zeroed. An acceptance binds the node to the socket before the answer leaves;
// one whose session is not that node's under Cloudly closes the socket and
// leaves nothing held. Of several acceptances of one node the last one wins, and
// an older socket of that node is cut.
//
// A push goes to the socket whose registration produced the binding, and only
// under that binding's session.
//
// After DropCustody has returned, nothing of the old custody leaves, on a node's
// socket or on Cloudly's, and nothing more is forwarded.
//
// # What it never does
//
// It holds no request back: not across an outage, not for a node at its limit.
// It never repeats one. It reads of a body what package envelope says of it and
// the session in an accepted registration; it keeps no body, and neither shows
// nor logs one. It acts on no `retry`, negotiates for no node, and verifies no
// session: Cloudly does. It writes nothing to disk.
//
// # How it is built
//
// Decisions are pure: routes.go (which methods), judge_request.go and
// judge_push.go (what passes), table.go (the binding table), load.go (what is in
// flight), recall.go (when a socket is asked to register again). The rest is a
// thin shell around them.
//
// # Goroutines
//
// One for each socket that ever forwarded a registration; it ends with the
// socket. One while sockets are being recalled after a return of Cloudly;
// UpstreamLost, DropCustody and Drain end it. Everything else runs on the reader
// of the socket that a message came on, and does not block.
//
// # Lock order
//
// Forward.recallMu, then Forward.mu, then a Conn's, then a socket's own. Forward.mu
// is held while a request is handed to its next socket, so that what was judged is
// still true when it is queued, and while a Conn is bound; it is never held across a hook, an event, an answer or
// a close, all of which may come back for it. Forward.hookMu is held while hooks
// run, in the order of what happened, and is taken with no other lock held. So a
// hook must not block, and of this package it may call Binding and Bindings alone.
//
// # Limits
//
// They stand in limits.go, each with its reason. Answers on their way to a node
// wait in the queue of its socket, which has a bound of its own (package
// typedsocket): an answer beyond it becomes a failure in the answer's place.
package forward
