// Package tunnel is the wire between the hub and its nodes: the handshake that
// proves who both ends are, what crosses the connection's one stream, the
// framing of packets on both lanes, the keys of the direct one, and the
// settings of QUIC and TLS below them. docs/tunnel.md specifies it well enough
// to write a second implementation (contract §10.1 leaves the wire open, design
// §5 says what it has to do).
//
// A node dials with [NodeTransport], [NodeTLS] and [NodeQUIC], opens one stream
// and calls [Initiator].Handshake. The hub listens with [HubTransport],
// [HubTLS] and [HubQUIC], takes the stream, and calls [Responder].Receive; with
// the [Request] it finds the member, asks its [Terms] what to answer, and calls
// Answer. Both then hold a [Session]. Its [Control] reads what the other end
// sends; the first thing the hub reads there is the node's confirmation.
//
// Inner packets go through a [Splitter] into datagrams and come out of a
// [Joiner]. Where the direct lane was agreed, the session's [Direct] seals and
// opens them, and its [Epochs] renew the keys.
//
// # What it promises
//
//   - A session exists only between two ends that hold the private keys they
//     claim, mean the same authority, and sit at the two ends of one TLS
//     session. No certificate takes part in that.
//   - Readers are strict: each fault has a name of a closed set ([Rule],
//     [JoinResult], [OpenResult]), and one that is refused changes nothing.
//     What is to come is told by its number whether it may be passed over.
//   - Before a peer is authenticated, at most one frame of MaxBody bytes of it
//     is held.
//   - Nothing of the direct lane is believed before its tag, no packet is taken
//     twice, and none is sealed twice under one counter.
//   - Split, Take, Seal and Open allocate nothing in their steady state.
//
// # What it never does
//
// It opens no socket, starts no goroutine, and knows no clock: it is given
// streams, and the time where time matters. It chooses no member, judges no
// packet's addresses, and keeps no queue. It logs nothing; no error quotes what
// a peer sent, and no key prints.
//
// # Waits
//
// The handshake, Control.Next and WriteMessage wait in the stream alone, so the
// caller's deadline on the stream ends them: HandshakeLimit for all of the
// handshake up to the confirmation.
//
// # Locks
//
// A [Joiner] has one mutex. A [Direct] has one for those who change epochs, and
// one for each epoch's window; none is held while another is taken. Sessions,
// Controls and Epochs belong to one goroutine.
//
// # Limits
//
// They stand with their reasons in limits.go and quicconfig.go.
package tunnel
