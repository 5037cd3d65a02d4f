// Package hub holds the built relay's VPN hub, as a process between a simulated
// Cloudly and real clients (hub/node, each on a network stack of its own inside the
// test), to acceptance rows of contract §22: R13, R15, R56, R59 to R62, R64 and R66
// so far. It has no code outside its tests.
//
// # What it promises
//
// Every packet is one of a real TCP or UDP socket, crosses the hub over real UDP
// sockets on loopback, and is judged by the network that Cloudly gave. A test that
// says "nothing passes" sends until the hub itself counts the drop by its reason.
//
// Each client reaches the hub over a path of package impair that is mildly bad where a
// test says nothing else. A test that fails logs the seed of its paths, and
// RELAY_IMPAIR_SEED repeats them.
//
// # What it never does
//
// It sets no clock: expiry under a stepped clock, and the fate of each datagram of a
// handshake, are held by packages hub and hub/node in a fake time. It needs no root.
package hub
