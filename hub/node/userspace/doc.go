// Package userspace is a node's network stack inside the program: a device for a client of
// package node that needs no privilege and no interface, for tests, the demo and whoever
// may not open a TUN. Its applications dial and listen through it.
//
// # What it promises
//
//   - IPv4 with TCP (with SACK), UDP and ICMP echo, on the workload addresses that it is
//     made with and on the control address that the hub gives. Everything else is routed
//     into the tunnel.
//   - A packet that leaves has the source address of its socket. Where that was not chosen,
//     it is the first workload address: the hub relays nothing between control addresses
//     (contract §10.7).
//   - A TCP connection that could not be had fails as one of the system's does: refused, no
//     route and timeout are the same syscall.Errno.
//   - Close ends every connection, listener and read, and returns when no goroutine of the
//     stack is left.
//
// # What it never does
//
// It touches nothing of the system, routes nothing between its own addresses and others, and
// resolves no names.
//
// # Goroutines
//
// Those of gVisor's stack, which Close ends. The one lock of a Stack is taken before any of
// gVisor's, which never calls back.
//
// # Limits
//
// At most 1,024 packets wait to be read; more are dropped, as a link does.
//
// It stands on gVisor directly, with the version that golang.zx2c4.com/wireguard pins: that
// module's own netstack cannot take an address after it was made, and its Close closes a
// channel that the stack's timers may be writing to.
package userspace
