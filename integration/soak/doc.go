// Package soak holds the built relay to what must be true whatever happens around it,
// for as long as one likes: acceptance rows R94 and R97 of contract §22. It has no code
// outside its tests. It also holds the released program to have no failpoints.
//
// # What it promises
//
// The relay is built with the tag failpoints, and runs between a simulated Cloudly, 64
// simulated nodes of which eight are members of its hub with userspace clients, and an
// ingress. While all of them work, a schedule of a seed does to them what networks,
// peers, operators and clocks do: sockets are cut, also in the middle of a frame and
// between two steps of the relay, peers are stalled, networks are swapped in the middle
// of taking one over, Cloudly goes and comes, clocks are set, certificates replaced. Custody
// ends by each of its names, and is given back.
//
// Throughout, and at quiet points between, these hold:
//   - an answer that a sender was given was given by the other end, which took the
//     message once; every message is over, one way or the other (ledger_test.go);
//   - no packet arrives that no network lets pass which can have been in force
//     (laws_test.go);
//   - Cloudly, the relay and each node agree about the node's session;
//   - each escrow slot is served once, within its window, and while Cloudly is away
//     (slots_test.go);
//   - when custody has ended, nothing of what was held is left: no renewal is released or
//     counted, no packet is relayed, no table is held and nobody is carried, in the gap and
//     behind it, where an outage finds nothing to release; and the fleet comes back whole
//     (events_custody_test.go);
//   - goroutines and heap are back at what they were at an earlier quiet point
//     (weight_test.go);
//   - no secret stands in any output, and no peer saw a rule broken (package rig).
//
// At the end SIGTERM under load ends the relay within its ten seconds, with 0.
//
// TestR94_R97_Soak draws from all events (events_test.go). TestR94_R97_EachThing does each
// of them once, around smaller relays, so that none is left to luck. Each judge has a test
// that feeds it what is wrong. A fault ends a run, which tells its seed and what was done.
//
// # How to run it
//
// As a part of go test the soak takes some seconds. RELAY_SOAK=60s has it go on for a
// minute. RELAY_SOAK_SEED=N repeats a schedule, though not what the goroutines of a process
// make of it. RELAY_SOAK_LOG=FILE keeps the whole log of the relay.
//
// # What it never does
//
// It asserts no times but the ten seconds of the drain. It needs no root.
package soak
