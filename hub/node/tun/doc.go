// Package tun is a node's Linux TUN interface, as a device for a client of package node.
//
// # What it promises
//
//   - [Open] makes the interface, and Close removes it with its addresses and routes. It
//     needs CAP_NET_ADMIN and /dev/net/tun; its error names the one that is missing.
//   - When the hub has said the node's place, the interface gets the control address with
//     the control prefix, the inner MTU of the network, and the addresses and routes of
//     [Options]; and it is set up. A control address that changed takes the place of the
//     one before.
//   - TCP segments pass in batches (IFF_VNET_HDR, TSO), where the kernel has that.
//
// # What it never does
//
// It changes nothing but its own interface: no default route, no forwarding, no packet
// filter, no resolver. Which other addresses and routes there are is the operator's to say:
// packets of workloads must have their workload address as source already, since the hub
// drops all others (contract §10.7). It is told a route's source address, it does not
// choose one. It has no IPv6.
//
// # Goroutines and locks
//
// It starts none. Configure is called by one goroutine.
//
// # Limits
//
// At most MaxRoutes addresses and routes each.
//
// On systems other than Linux Open says that it is not supported there.
package tun
