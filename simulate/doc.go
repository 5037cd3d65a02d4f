// Package simulate holds the peers of a relay as programs: a Cloudly and a
// Pallet that speak the real wire, judge what they receive as the real ones
// would, and do what a script tells them. Tests drive a relay with them, and an
// operator can rehearse with them.
//
// # What it promises
//
// The peers share the vocabulary (contract) and the carrier (typedsocket) with
// the relay and nothing else, so that they can be wrong on their own and so
// catch it.
//
// What the real peer would refuse is refused, with the real name where the
// contract states one, and changes nothing. What the real peer would let pass
// although the contract forbids it to the relay (a call before the
// registration, an envelope with a foreign member, a body on the wrong socket)
// is answered and collected: Peer.Violations.
//
// Every message is recorded with its socket and direction: Peer.Frames. Waits
// have deadlines: Peer.Wait.
//
// A Step changes what becomes of one request: refused by name or by protocol,
// answered late, with given bytes, or never, its socket closed or cut.
//
// Where the seeds name no method, member or record, these peers speak this
// product's reading of them (contract §21): the exchange of the bearer, the
// members of a node's credential, the records behind references, the form of a
// signing authority and of a signature.
//
// # How to rehearse
//
// Make a Cloudly, enroll the nodes (EnrollNode) and Serve a listener. Start a
// relay with its Authorization and wait for it (WaitRegistered). Start a Pallet
// for each node with the credential that EnrollNode returned and the Authority
// that Cloudly signs by. Give each a projection (Cloudly.Project,
// Pallet.AdmitProjection) and let Cloudly renew it (KeepRenewed). Then Outage,
// Return, RotateCredential, DisableRelay, Script, and look at Node, Judgements,
// Frames and Violations.
//
// # What it never does
//
// It opens no connection and no listener of its own: both are given. It decides
// by no clock but the given Wall; waits use timers. So everything here works in
// testing/synctest over pipes. It writes nothing anywhere, and no error, reason
// or violation quotes a secret. The record of frames does hold secrets: it is
// memory of a rehearsal and nothing else.
//
// A simulated Cloudly is no control plane: it keeps no history beyond what its
// judgements need, and it answers most reports with a plain acceptance.
//
// # Lock order
//
// Cloudly.mu and Pallet.mu come first; a socket's own lock, the script, the
// record and the violations are taken under them and take nothing themselves.
// No lock is held across a call, a dial or a wait.
//
// # Limits
//
// They stand in limits.go: the record of frames, the lists that are kept, the
// time a wait may take. What is beyond a bound is dropped, oldest first, and
// counted where that could mislead.
package simulate
