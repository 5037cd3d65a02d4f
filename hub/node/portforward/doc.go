// Package portforward carries TCP connections between a machine and a node's network
// stack inside the program (package userspace), which no other program of the machine
// can reach.
//
// # What it promises
//
//   - A connection that a [Rule]'s listener takes is answered by one that its Dial makes;
//     what one end sends the other gets, in order, and an end that has sent all (FIN) is
//     passed on alone, so that the other direction goes on.
//   - It is bounded: [MaxConnections] at once over all rules, [DialWait] for the other
//     end, [IdleWait] without a byte in either direction.
//   - A listener that cannot take a connection for lack of descriptors waits and tries
//     again.
//   - A panic is logged without its value. It costs the connection that it was about, and
//     one where connections are taken costs the rule; the others go on.
//   - Run returns when its context has ended, and with it every connection, listener and
//     goroutine.
//
// # What it never does
//
// It looks at no byte, names no peer in a log above the level debug, and reports no end of
// a connection as an error of its own: peers end connections as they like. Why the other
// end could not be had is one of five reasons at the level info: timeout, refused,
// no-route, name-not-resolved, and not-reached for all else.
//
// # Goroutines
//
// Run has one for each rule, which takes connections, and two for each connection. All
// have ended when it returns.
//
// # Lock order
//
// The one lock is held while nothing else is called.
//
// # Limits
//
// MaxConnections holds two buffers of 32 KiB each: 16 MiB.
package portforward
