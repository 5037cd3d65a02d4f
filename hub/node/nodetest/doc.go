// Package nodetest is what tests of the node's side need around it: a packet network inside
// the process, with seeded faults and addresses that change ([Network]), a hub as small as
// it can be ([Hub]), and a device whose packets a test gives and takes ([Device]).
//
// # What it promises
//
// Everything runs in a bubble of testing/synctest: it waits for nothing outside. The hub
// speaks the real wire, of package tunnel, and judges no packet: it relays by destination
// address, so that a node can be tested without a policy.
//
// # What it never does
//
// It is imported by tests alone.
//
// # Goroutines and locks
//
// A Hub ends its goroutines in Close. A Network has none: packets that are under way are
// timers. Locks are leaves.
package nodetest
