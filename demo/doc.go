// Package demo shows a relay at work: the one that `relay serve` runs, in a cluster of
// its own that lives in one process. It is a good place to begin to read: cluster.go is
// what a relay stands between, and each file steps_*.go is a chapter of what it does.
//
// # What it promises
//
// The relay is a whole appliance with the real seams, behind settings that are read as
// its flags are. Its peers are those of package simulate and clients of package
// hub/node on network stacks of their own. All speak over real sockets on loopback, and
// every byte that is said to have passed has passed them.
//
// A step shows facts, and each fact was read back: from a page of the operator
// endpoint, or from the record of the peer that it names. What the demonstration meant
// to do is no fact, and neither is a zero in place of what a page does not state. A step
// that does not hold says what was expected and what was found, and those behind it are
// skipped by name.
//
// A Break makes a simulated peer misbehave, so that it can be seen that a step fails.
//
// # What it never does
//
// It needs no privilege, no configuration and no network, and looks no name up. It
// writes into the folder that it is given and nowhere else: what the relay reads from
// files, and the file that is downloaded. Nothing that is secret is shown; the secrets
// of a demonstration are made for it and end with it.
//
// # Goroutines
//
// Run owns all: the relay, the peers, a web server inside the network of a node, and
// transfers. It has ended them when it returns. A printer is called by one goroutine.
//
// # Locks
//
// Those of the peers. What a step changes of the cluster it changes alone.
//
// # Limits
//
// stepWait bounds a step, drainWait the end of the relay, MaximumSize the file. Live
// traffic is one round a second.
package demo
