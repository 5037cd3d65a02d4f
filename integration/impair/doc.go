// Package impair is a bad network for tests: a [Proxy] for UDP between clients and one
// upstream address, which loses, repeats, reorders, corrupts, delays and throttles
// datagrams, lets none pass above a size, forgets where clients came from as a NAT does,
// and goes dark. It is imported by tests only.
//
// # What it promises
//
// What becomes of a datagram is a pure function of the seed, the direction, the number of
// its flow and its own number in that direction of the flow ([Path.Decide]), and each kind
// of impairment is drawn for itself: another rate of one leaves the others as they were. A
// flow is a client's address, numbered as they come. So a run is as repeatable as the order
// in which its clients send; what remains is the machine's scheduling.
//
// Where no reordering is asked for there is none: jitter keeps the order, as a queue does.
// A size limit is that of a path that answers nothing: the datagram vanishes (design §5.3).
//
// When Rebind has returned, nothing leaves any more from where the client was before, and
// what is sent there vanishes without an answer. When Blackout has returned, nothing passes.
//
// Every datagram is accounted for ([Counts]): passed, or dropped for a [Reason], or waiting.
//
// # What it never does
//
// It reads nothing of what datagrams hold, logs nothing and carries no ECN mark. Where no
// delay is set it adds none of its own but that of a goroutine. It wants no privilege; the
// sockets come from Config.ListenPacket, so that they may lie in network namespaces.
//
// # Goroutines
//
// One reads from the clients, one a flow (and one more for the place that it had before its
// last Rebind) reads from the upstream, and one a direction sends. Close ends and waits for
// all.
//
// # Lock order
//
// Proxy.mu and line.mu are leaves, as far as they are ours: neither is held while the other
// is taken. Proxy.mu is held for reading while a datagram is written to a socket, which is
// how Rebind and Blackout know that none is under way.
//
// # Limits
//
// They stand in limits.go: the bytes that wait in a direction, flows, and delays. The kernel
// has queues of its own, and what it drops of them it drops uncounted: a test that counts
// every datagram sends no more at once than its buffers hold.
package impair
