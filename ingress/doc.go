// Package ingress is what the relay does for the ingresses of its cluster: it
// holds the route table, decides on which sockets an ingress speaks, tells them
// of newer tables, and hands Cloudly their traffic counters (contract §11).
//
// # What it promises
//
// A table takes the place of the one held when its revision is greater, and never
// otherwise, whether it was pushed or pulled. "None yet" is a fact and keeps what
// is held. The bytes of a table are served as they came: they are judged and not
// written anew. They live in one memory, which is zeroed when the table is
// replaced or dropped and no answer is being made of it any more.
//
// A registration is judged in the order of contract §11.2: its size, its offer,
// the negotiation, its shape. Then the body that came goes to Cloudly, unchanged,
// and what Cloudly answers comes back: a refusal with the bytes of its data, an
// acceptance with the relay's own offer in the place of Cloudly's (contract O16).
// The socket is the ingress of its node before the answer leaves. It stays so over
// a loss of the session to Cloudly, until it ends, a newer one of that node is
// accepted, or custody ends.
//
// A table is answered on such a socket alone, also while Cloudly is away.
//
// After DropCustody has returned nothing of the old custody leaves: no table, no
// registration, no hint, no page of counters. An acceptance that arrives after a
// loss of the session, an end of custody or the end of its socket holds nothing.
//
// # What it never does
//
// It judges no bearer, no designation and no node: Cloudly does. It keeps no
// bearer and no counters, and writes nothing to disk. It shows of a table its
// revision and how much it holds; no reason, log line, status, event or panic
// quotes a table, a bearer or another text of a peer. It sends no hint again: the
// next one says more.
//
// # How it is built
//
// Decisions are pure: table.go (which table stays), roles.go (which socket is
// whose ingress), registration_judge.go, traffic_order.go (who is asked next),
// traffic_judge.go. The rest is a thin shell around them.
//
// # Goroutines
//
// The handlers start them, since none may block: one for each registration and
// each question for counters in flight, one for each ingress that is being given
// a hint, one while pushed tables wait to be judged, which takes a tenth of a
// second for the largest. DropCustody ends all but the last and has waited for
// them; Drain has waited for all.
//
// # Lock order
//
// Ingress.mu, then what a Conn locks, then a socket's own. Ingress.mu is held
// while a short answer is queued, so that what was judged is still true then. It
// is held across no call, no table and no end of a socket. Ingress.telling
// is held while events are published, in the order of what happened, and is taken
// with no other lock held.
//
// # Limits
//
// They stand in limits.go, each with its reason. Answers to an ingress wait in the
// queue of its socket, which has a bound of its own (package typedsocket).
package ingress
