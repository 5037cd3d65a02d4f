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
// # What it never does
//
// It shapes no traffic and sets no clock: loss, reordering and expiry under a stepped
// clock are held by packages hub and hub/node in a fake time. It needs no root.
package hub
