// Package appliance builds a whole relay out of its duties: from settings and
// four seams to a process that serves, drops custody and drains. It is the one
// place that knows every duty.
//
// # What it promises
//
// Start order (contract §5.6): the settings and the own offer are judged before
// anything is bound, the certificate is loaded, operator endpoint and node
// listener are bound, and only then Cloudly is dialled, so that the registration
// states what was really bound. Nodes that come before the registration are
// refused relay-not-ready.
//
// A custody drop (contract §6.2) runs through every duty, synchronously, before
// the session to Cloudly sends or serves anything else. A duty that panics in it
// does not keep the others from dropping theirs, and ends the relay.
//
// A drain (design §8) takes at most ten seconds: readiness is off, nothing new is
// taken, node sockets are closed as they come to rest and the other duties are
// drained beside them, then the session to Cloudly, and the operator endpoint last.
//
// The relay never ends because Cloudly, the network, a certificate or the clock
// is not as it should be. It waits, and readiness names what it waits for.
//
// # What it never does
//
// It decides nothing about what is carried: duties do. It writes no file. It
// keeps no state of its own but the phase of its life.
//
// # How a duty is added
//
// A duty is a room of its own that meets duty.Duty, a row in the catalogue of
// events, and one part in duties.go. The part names what it serves, pulls and wants
// to be told (part.go); join.go does the rest.
//
// # Goroutines
//
// Run owns all: one for each duty's standing work, one for each listener. It has
// ended them when it returns, or says that it could not.
//
// # Locks
//
// None of its own is held while a duty is called. Hooks of cloudly and forward run
// under the rules of those packages: they must not block.
package appliance
