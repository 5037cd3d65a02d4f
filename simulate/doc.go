// Package simulate holds the peers of a relay as programs: a Cloudly, a Pallet and
// an ingress that speak the real wire, judge what they receive as the real ones
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
// signing authority and of a signature, what is in a route beside its hostname and
// destinations, and the failures of a traffic bucket.
//
// An Ingress really terminates HTTPS: it serves the table that it holds on the
// listeners it is given, and counts what passes. A route is honoured whole or its
// table is refused; UDP port routes are not served, and TableJudgement says so.
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
// For an ingress, designate it (DesignateIngress) and start an Ingress with that
// bearer. Issue the certificates of its hostnames (TLSAuthority), publish the
// routes (PublishRoutes), let the ingress Serve a listener, send it requests, and
// read what it counted (ReadTraffic).
//
// # What it never does
//
// It opens no listener of its own, and no connection where it is given a dialler.
// It decides by no clock but the given Wall; waits use timers. So everything here
// works in testing/synctest over pipes. It writes nothing anywhere, and no error,
// reason or violation quotes a secret. The record of frames does hold secrets: it
// is memory of a rehearsal and nothing else.
//
// A simulated Cloudly is no control plane: it keeps no history beyond what its
// judgements need, and it answers most reports with a plain acceptance. It keeps no
// assignments: that an ingress runs is what it is told. A simulated ingress is no
// proxy for the Internet: it bounds its clients for one machine, checks no backend
// before a client needs it, and speaks neither HTTP/2 nor HTTP/3.
//
// # Goroutines
//
// Each peer owns those it starts, and Close ends them and waits for them. The
// carrier owns those of its sockets.
//
// # Lock order
//
// Pallet.registration and Ingress.asking come first: they order the calls of one
// peer, and are the only locks that are held across a call. Then Cloudly.mu,
// Pallet.mu and Ingress.mu; a socket's own lock, the script, the record, the
// violations, the clients of an ingress and its counters are taken under them or
// alone, and take nothing themselves.
//
// # Limits
//
// They stand in limits.go: the record of frames, the lists that are kept, the
// time a wait may take. What is beyond a bound is dropped, oldest first, and
// counted where that could mislead.
package simulate
