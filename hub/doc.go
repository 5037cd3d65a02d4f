// Package hub is the cluster's VPN hub: nodes dial it over QUIC, prove themselves
// with Noise, and packets between them pass exactly as the network allows that
// Cloudly gave (contract §10, design §5). Its pure halves are hub/network (which
// network is held, and until when a member is one), hub/policy (which packet
// passes) and hub/tunnel (the wire, docs/tunnel.md); this package is the shell
// around them.
//
// # What it promises
//
// The hub is bound before it holds a network, and an empty one takes nobody. A
// connection is a member's when it has proved the key that the network in force
// names and has confirmed the handshake; the newest is the one. A session lasts
// for as long as its membership: no change of grants, prefixes or expiry cuts it.
//
// A key that two ends use is named within 65 s of the start of the second, where both are
// the relay's own nodes, and one is changed for the other every 5 s at most. A node that was
// killed or has moved is never taken for two: whoever stands is asked first (switcher.go;
// docs/tunnel.md, section 10).
//
// A packet is judged by one network when it comes, and again when it leaves: by
// another network if there is one by then, and by both clocks. So what waits in a
// queue never leaves against a rule that came meanwhile.
//
// When an apply is answered idle, nothing leaves any more that the network forbids;
// nor does anything of the old custody once DropCustody has returned. For the first
// the hub has to know what QUIC queues and tells nobody. It remembers what it handed
// over last (handed.go) and counts what QUIC's writer finishes at the socket
// (written.go). It has QUIC send datagrams that mean nothing until those that are
// forbidden must be out of its queue, and then until its writer has finished more than it
// can have had before it. A session that does not get so far in 10 s is closed. For the
// second every connection is closed, and QUIC has written what it had sealed when that is
// done; an apply also waits for that of sessions that have lost their places before. To
// leave is to be handed to the system: how long that holds a packet, on its way to a link
// that is slow, it tells nobody.
//
// Memberships end by the first of the wall clock and the monotonic one that reaches
// their time, also while Cloudly is away, and packets of and to a member stop at
// that instant.
//
// Packets that are larger than a member's path carries are cut. That a path has become
// narrower is for the member to find out, whom the hub tells once a second while it sends
// how large its datagrams are (docs/tunnel.md, section 7); QUIC here begins anew when the
// member has moved.
//
// # What it never does
//
// It writes nothing to disk. It shows no key but its own public one, and nothing of
// what packets carry. It does not tell a peer whose key it does not take whether it was
// ever known; one without any key learns only whether there is a network, by whether its
// message is read. It waits for no member but on a goroutine of that member.
//
// # Goroutines
//
// Run owns one that accepts and one that looks at deadlines. Each connection has one
// that runs the handshake and reads the stream, one that reads datagrams, and once it
// is confirmed one that hands packets to QUIC, which waits there when the member is
// slow. Pushed networks are judged on one of their own while some wait, since that
// takes tens of milliseconds; each network that is not effective at once has one that
// waits for it, 10 s at most: a connection that takes nothing for so long is closed,
// which waits for the system alone.
// Run and Close wait for all of them.
//
// # Lock order
//
// Hub.applying, then Hub.mu, then an outlet's mu, or that of a gate, or a seat's
// echoMu, or a socketWatch's mu; the last four are leaves. The packet path takes no
// lock but an outlet's: it reads the table and the routes from atomic pointers. No
// table is compiled and no connection closed under Hub.mu. Hub.telling is held while
// events are published, and is taken with no other lock held.
//
// # Limits
//
// They stand in limits.go, each with its reason.
package hub
