// Package netns holds the built relay and the built `relay node`, each with a real
// kernel's TCP/IP around it, to rows R62 and R66 of contract §22 and to bug reports about
// MTU, UDP and roaming: two members in network namespaces of their own, with TUN
// interfaces, talk through the hub by ping and iperf3. It has no code outside its tests,
// and they need Linux.
//
// # What it needs
//
// Root, /dev/net/tun, and ip, ping, iperf3, nft and conntrack in PATH. A test skips and
// says what is lacking; with RELAY_REQUIRE_NETNS=1 it fails instead.
//
// # What it promises
//
// Each test runs again in a process that is started in a network namespace of its own.
// There are the relay, the simulated Cloudly and the hub's end of every leg; a member, and
// the router on its way, are in further namespaces, which have no name: they last as long
// as a descriptor of that process, or a process in them. Every process is killed by the
// kernel when its parent dies. So nothing is left of a test however it ends, tests may
// run at the same time with the same addresses, and the machine's own network is never
// touched.
//
// Legs cut what QUIC sends in batches to the MTU, as a wire does, so that filters and
// counters see packets.
//
// What a test says of losses it reads from iperf3's report, from the counters of hub and
// nodes, and from those of the kernel (nftables, ICMP); rates are logged and never judged.
// Every `relay node` that a test has not ended itself is ended by SIGTERM behind it, and
// must exit with 0, without having shown its key.
//
// # What it never does
//
// It shapes no traffic by netem, which the kernels that it is made for do not have: loss
// is nftables' and package impair's.
//
// # Goroutines
//
// One a program, which stays on the thread that started it until it has ended. Everything
// else belongs to the test's own goroutine.
//
// # Limits
//
// insideLimit of one test, testLimit of one wait, datagramRate of a flow that may lose
// nothing.
package netns
