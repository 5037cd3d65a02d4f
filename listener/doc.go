// Package listener is the node listener: TLS under the relay's origin, plain
// HTTP answers, and the sockets of nodes and ingresses, each with one role and
// its limits (contract §16; design §4, row §16).
//
// # What it promises
//
// What is reported as bound is what was bound. A handshake without a
// certificate at hand fails with an alert, and the listener goes on. TLS is 1.2
// or newer without session tickets, so every new connection is shown the
// certificate of the moment; connections that stand are not touched by a new
// one. HTTP is 1.1 alone, which bounds what one connection can ask for at once.
//
// A socket begins unbound and becomes a node's or an ingress's once, by an
// accepted registration; it never changes again. What reaches a handler is
// decided by role and method alone, from one table; everything else is refused
// by the name that contract §8.4, §11.3 and O34 give it. An unbound socket has
// 30 s, frames of 64 KiB, two requests in flight, and is not read while 64 KiB of
// answers to it are unread.
//
// # Which paths upgrade
//
// In this order: a path with a dot segment, escaped or not, is answered 404;
// /v2/ and the registry's token path belong to the registry; /spark/ is 404 for
// every method. On any other path a WebSocket handshake is taken (typedsocket.md
// §4.5). Then POST is 405, the root 426, anything else 404. There is no
// http.ServeMux: it redirects paths that have dot segments.
//
// # What it never does
//
// It reads no body of a plain request and no body of a typed request; judges no
// registration and keeps no session (the room forward does); sets no deadline on
// an upgraded connection; checks no Origin header, since authority is the
// registration; queues nothing.
//
// # Goroutines
//
// Serve runs in its caller's. Sockets have the carrier's; from the end of one on
// there is one more here, until the socket is gone and its place given back.
// Close waits for all of them.
//
// # Lock order
//
// Listener.mu and Conn.mu are never held together. Either may be held while the
// carrier takes its own lock, never the reverse. Neither is held while a hook, a
// handler or a network call runs.
//
// # Limits
//
// They stand in limits.go, each with its reason; frame sizes by role are those
// of contract §19.
package listener
