// Package network decides which VPN network a hub takes over, what becomes of
// each member when it does, and until when a member is one (contract §10.3,
// §10.5, §10.6; design §5.4).
//
// # What it promises
//
// Everything here is a pure function of its arguments: the same network, the
// same readings of the clocks, the same answer. A Clock is what was read of the
// clocks so far; its owner keeps it.
//
// Admit and AdmitPulled are the whole of contract §10.3 and §10.4 about a network
// that came. Networks are those that their readers in package contract let pass:
// every bound and every order of contract §10.2 has been judged there, with a
// reason for each violation, before anything is decided here.
//
// Compare says of every member whether its membership goes on, so that a live
// session is cut exactly when contract §10.5 says so.
//
// A Deadline is reached as soon as one of two clocks has reached it. Setting the
// wall clock back does not move it, and no network that comes afterwards is worth
// more for that: a Clock reckons its deadlines from where the wall clock would stand.
//
// # What it never does
//
// It reads no clock, keeps no state, starts no goroutine, takes no lock and opens
// nothing. It never changes a network that it is given. A reason that it gives
// names members and rules, never a value of a network.
//
// # Limits
//
// The bounds of a network are those of package contract. Times are milliseconds;
// a reading outside of what the contract can write (0 to 2^53-1) counts as the
// nearest one inside.
package network
