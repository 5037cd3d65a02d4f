// Package policy judges packets between the members of a VPN network: who sends,
// from where, to where, by which grant, until when (contract §10.6, §10.7; design
// §5.4).
//
// # What it promises
//
// Compile makes of a network an immutable Table, so that a packet is judged by
// exactly one revision. Judge is a pure function of the table, the packet, the
// membership it came from and one reading of the clocks; it allocates nothing.
// Explain is the same rules for a person.
//
// A packet is relayed when its membership is in force and has not ended, it is
// well formed (packet.go), its source is in a prefix of that member, its
// destination is in a prefix of another member that has not ended, and a grant
// joins the two domains in that direction. Everything else is dropped for exactly
// one Reason: the first that applies, in the order of the list in reason.go. The
// one exception is an ICMP echo request from a member's own control address to the
// hub's, which is answered (AnswerEcho) as often as the member's EchoBudget
// admits. An empty table drops everything.
//
// A packet that a member sends back the way it came is dropped as spoofed, since
// its source is another's: no loop passes the hub twice.
//
// Memberships have names that are never used again (ID). Whoever keeps something
// for a member, a session say, keeps the ID with it and asks the table in force
// for it: nil means that the membership is over. Slots are used again, so an array
// by slot compares the ID before it hands out what it holds.
//
// # What it never does
//
// It keeps no state between packets, EchoBudget apart, which its owner holds. So a
// reply needs a grant of its own (contract O24c), and fragments are judged one by
// one: a later one by its addresses alone, as the first is. It joins no fragments,
// sends no ICMP errors, translates nothing, decrements no TTL, and shows nothing
// of what a packet carries. It does not know who is connected or whose queue is
// full.
//
// # How tables follow one another
//
// The owner of the table in force compiles the next one from it, one at a time,
// and stores the pointer in one atomic store. A table that was compiled and not put
// in force is thrown away. Whatever waits in a queue keeps the Epoch of the table
// that let it pass, and is judged again when that changed.
//
// # Goroutines, locks
//
// None. A Table may be used by any number of goroutines, also while the next one is
// compiled from it. An EchoBudget belongs to one at a time.
//
// # Limits
//
// Those of contract §10.2, which Compile holds where the table's shape rests on
// them; EchoRequestsPerSecond.
package policy
