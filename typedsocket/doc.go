// Package typedsocket is the carrier: TypedRequest 8 envelopes and directional
// streams over one WebSocket, as client and as server (contract §14,
// typedsocket.md). It knows no method.
//
// # What it promises
//
// Both sides start requests on one socket, many in flight, answered in any
// order. An answer is matched on method, correlation id and instance id, all
// three, and only on the socket its request left on. Every call has a
// deadline; a call ends when its socket ends.
//
// Forwarding is a primitive: Request.Forward sends the bytes of `request` on
// under a new envelope and brings the bytes of `response` back under the first
// ids. Neither is decoded or changed, and a large one is not copied either, but
// for the growth of the buffer it is read into. No other member of a peer's
// envelope crosses, except an `error` and a `retry` that are objects.
//
// Frames of one flow never overtake each other. Flows share the socket by
// bytes (package queue); own frames, pongs first, go before them. What flows
// have queued can be taken back while the socket stays (Socket.DropFlows).
//
// The memory of a message that no handler or caller has seen is zeroed, since
// it may be a registration (contract §18).
//
// A peer that is silent for 60 s, that takes no byte for 60 s, that does not
// read its answers, or that breaks the rules, loses the socket, with a close
// code and a reason that names the rule, its limit and the value seen.
//
// # What it never does
//
// It never waits in the reader: what a message leads to is queued at once or
// refused. The one exception concerns its own peer alone, which is not read
// while it leaves too much unread, where Limits.Unread says so. It never queues
// without a bound. It never sends again by itself what was lost with a socket:
// a peer with an outbox does that. It never quotes a peer's text in an error or
// a reason.
//
// # How it is built
//
// The WebSocket library does the handshake and reads; one goroutine calls it.
// Every frame leaves through the socket's own writer, the second goroutine,
// which writes what is queued in one go, and forwarded frames from the memory
// they were read into. So no context of a caller reaches the library (one that
// ends would close the connection), a pong never waits for a reader, and no two
// writers cut into each other's frames. Whoever waits for something is told of a
// socket's end, and of frames that were dropped, on goroutines that end before
// Done is closed.
//
// # Lock order
//
// Each socket has one mutex, Socket.mu. It is held for table and queue
// operations only, never across a callback, a read or a write, and never
// together with another socket's. A stream mux may hold its own lock while it
// takes Socket.mu, never the reverse. Callbacks run on goroutines of sockets,
// never inside a method that their owner called.
//
// # Limits
//
// They stand in limits.go, each with its reason; frame sizes by role are
// contract §19.
package typedsocket
