// Package escrow holds the built relay, as a process between simulated peers on
// loopback, to the acceptance rows about the DNS lease renewals that it keeps for
// nodes (contract §22): R45 to R55, and what R01, R03 to R06, R20 to R25 and R93
// say of a hold. It has no code outside its tests.
//
// # What it promises
//
// Windows are real ones around the present time. A test that says "nothing is
// pushed" waits for something that the relay does later by its own account, and
// then counts the messages that crossed the nodes' sockets and the pushes that the
// relay itself counts.
//
// Runs are composed here, their digests written out by hand, so that an encoder
// that is wrong in the relay and in the simulated Cloudly alike is noticed.
//
// # What it never does
//
// It steps no clock and waits for no retry but the first: slots of minutes, growing
// waits and a clock that is wrong are held by package appliance in a fake time
// (R51, O36). The wording of single violations is held by package contract.
//
// # Limits
//
// atOnce is how many tests run at a time, margin how long the windows of a test
// are kept apart.
package escrow
