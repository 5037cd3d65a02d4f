// Package node is the node's side of the tunnel (design §5, docs/tunnel.md): a [Client]
// dials the hub of a credential, proves itself, and moves packets between the hub and a
// [Device], which is a TUN interface (package tun) or a network stack inside the program
// (package userspace).
//
// # What it promises
//
//   - It dials until it is told to stop, whatever the hub answers and for however long the
//     hub is away. What ended the last attempt has a name of a closed set ([Reason]), and
//     each name says when the next one is made. No wait is longer than five minutes, and
//     none but the first after a good tunnel is zero.
//   - One connection at a time: the client never takes its own place at the hub.
//   - A tunnel outlives a change of the machine's address, of its way to the hub and of a
//     NAT between. The socket is bound to no address and stays the same until the
//     path becomes narrower; the kernel chooses the source of each packet, the hub sees
//     another address, validates it (RFC 9000 §9) and answers there. The node itself notices
//     nothing, so an idle one is found at its new address with its next keepalive, within
//     ten seconds. Packets that the machine has no way for are lost, and counted; only
//     silence of 30 s ends the tunnel. Each attempt has a new socket.
//   - A successor credential ([Client.Renew]) changes nothing but what is shown, since
//     that is all that it may change (contract §7.4). The hub ends a membership; the node's
//     clock never does.
//   - No packet is dropped for its size: one that does not fit a datagram goes in two. The
//     inner MTU is the hub's, and constant. QUIC does not notice that a path becomes
//     narrower, and loses what is too large; the client does within five seconds of traffic
//     ([tunnel.PathCheck]), and moves to another port, at which both ends measure anew. Loss
//     that spares no size, and a link that carries less than is sent, are not taken for it.
//   - Where another program uses its key, it comes back at a slower and slower pace, so that
//     the hub can name the key and one of the two stays away.
//   - Whoever is slow, loses packets, by count: device and QUIC never wait for each other.
//   - Nothing secret is shown by a status, a log line or an error. A panic is logged without
//     its value and ends the client as a device does that fails: Run returns ErrPanicked.
//
// # What it never does
//
// It judges no addresses (the hub does, of both ends), resolves no name, keeps nothing on
// disk, and offers no direct lane yet. It drops what is not IPv4 before it costs the hub
// anything. It knows no wall clock.
//
// # Goroutines
//
// Run has one that reads the device and one that writes to it, for all of its life, and,
// while a tunnel is up, one that sends datagrams, one that receives them, one that reads the
// stream, one that sends what checks the path and one that moves the connection. Run's own goroutine writes on the stream, and calls OnState. All have ended
// when Run returns.
//
// # Lock order
//
// Client.mu before a queue's or a Joiner's. No lock is held while foreign code runs.
//
// # Limits
//
// They stand with their reasons in limits.go: 256 KiB wait in each direction.
package node
