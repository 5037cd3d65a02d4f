// Package escrow holds the DNS lease renewals that Cloudly signed ahead of time,
// and hands each node its own while Cloudly is away (contract §9; design §4, O9,
// O36, §9.5).
//
// # What it promises
//
// A hold is judged in the order of contract §9.3. One that is accepted replaces
// the node's run as a whole, an empty one clears it, and a refused one changes
// nothing that is held.
//
// A renewal is pushed only while no registered session to Cloudly stands, only
// while its window is current by the wall clock, and only if no current one of
// its node has a higher sequence. The node gets the bytes of `signed` as they
// came, under the binding that the node itself obtained, on the socket of that
// binding and on no other. Of one projection no lower sequence is pushed after a
// higher one was acknowledged, and none again that was. At most one push is in
// flight for a node. What was not acknowledged is pushed again while it is
// current: after 5 s, then after twice as long each time, up to 60 s.
//
// The wall clock is compared with the monotonic one. When it has stepped back by
// more than 30 s, nothing is pushed until it has caught up, or a session to
// Cloudly is registered.
//
// A push that must not be any more, because Cloudly is back, its window ended or
// a higher one opened, is withdrawn: it is not sent, nor sent again. An
// acknowledgement of what had left by then still counts, as long as the push's own
// time lasts, so that the next outage does not begin with what the node has. It is
// waited for no longer once another push is due to the node, and counts no more once
// custody has ended. After DropCustody has returned, nothing that was held leaves:
// sockets that may still have a push to write have been cut (contract §6.2).
//
// # What it never does
//
// It verifies no signature and signs nothing: it holds no key and no trust. It
// reads no body but that of a hold and that of a push's answer. It writes nothing
// to disk, and never shows or logs a body, a signature or a session. It
// touches no packet authority: renewals extend DNS alone.
//
// # How it is built
//
// The decisions are one pure machine (machine.go, with its table): what happened
// goes in with the reading of both clocks, pushes come out. The rest is a thin
// shell. Hooks change the machine and wake the loop of Run, which alone begins
// pushes.
//
// # Goroutines
//
// Run owns all of them, one for each push in flight, and has ended them when it
// returns.
//
// # Lock order
//
// Escrow.tellMu, then Escrow.mu, then a socket's own or that of the events.
// Escrow.mu is held for decisions only, never across a push, a cut, an answer or
// an event. Wall is called under it and must not block.
//
// # Limits
//
// They stand in limits.go, each with its reason.
package escrow
