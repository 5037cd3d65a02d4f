// Package hub holds the built relay's VPN hub, as a process between a simulated Cloudly
// and clients, to acceptance rows of contract §22: R01, R02, R04, R13, R15, R20 to R25,
// R43 and R56 to R67; and to what adversaries do. It has no code outside its tests.
//
// # What it promises
//
// Real clients (hub/node, each on a network stack of its own inside the test) send what
// TCP and UDP sockets send. They reach the hub over a path of package impair that is
// mildly bad where a test says nothing else. A test that fails logs the seed of its
// paths, and RELAY_IMPAIR_SEED repeats them.
//
// Peers of the tests' own (package hub/tunnel) send what no right node would, stop where
// a test says, and reach the hub directly, over real sockets on loopback: their tests
// count every packet. Of what comes to a peer behind a tap a test knows whether it had
// left the hub before an instant.
//
// A test that says "nothing passes" sends until the hub itself counts the drop by its
// reason, and counts what passed before.
//
// # What it never does
//
// It sets no clock: expiry under a stepped clock, and the fate of each datagram of a
// handshake, are held by packages hub and hub/node in a fake time. It needs no root.
//
// # Limits
//
// R67 passes 48 MiB of packets; RELAY_HUB_MEBIBYTES=1024 passes what the row says.
package hub
