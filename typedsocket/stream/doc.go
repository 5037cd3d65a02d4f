// Package stream carries directional byte streams beside the text messages of
// one WebSocket: the bytes of a "virtual-stream-v1" descriptor
// (typedsocket.md §1.9), in binary frames of our own. docs/streams.md
// specifies the frames well enough to write a second implementation.
//
// A [Mux] belongs to one socket, which it sees only as a [Carrier] to send
// through and as a reader that calls Receive. The side that puts a descriptor
// into a message creates a stream (Offer); the side that reads it opens the
// stream (Open). Which of them sends bytes is a matter of the descriptor.
//
// A sender is an io.Writer and io.ReaderFrom and ends with CloseSend. A
// receiver is an io.Reader and io.WriterTo, which report io.EOF only once
// length and digest were right, and ends with Accept or Reject. Both may
// Abort at any time.
//
// # Streams of a call
//
// The layer that makes the call owns its streams: it calls Published once the
// message with the descriptor is on its way, and Abort on every stream of a
// call that failed, in whatever state the stream is. Abort of a stream that
// the peer never opened ends it without a frame; of one that has ended it
// does nothing.
//
// # What it promises
//
//   - Bytes arrive in order, once, or the stream fails: with the reason that
//     the peer gave, or with one rule of the closed set [Rules].
//   - No success before the receiver's acceptance: CloseSend returns a receipt
//     only when the peer sent one that contradicts neither length nor digest.
//   - Receive, Abort, Reject, Accept, Close and the Carrier's sent never wait.
//     Write, Read and CloseSend end by progress, the open limit, the idle
//     limit, a context, an abort, or Close of the Mux, whichever comes first.
//   - A broken stream never costs the socket: Receive says what happened and
//     the socket decides.
//
// # What it never does
//
// It starts no goroutine (timers of the runtime fire its deadlines), keeps
// nothing of a stream that has ended, answers no frame that ends a stream, and
// quotes no text of a peer in an error message.
//
// # Locks
//
// One mutex a Mux guards all of its streams; it is held while the Carrier's
// methods are called. So the order is Mux, then whatever the Carrier locks,
// and the Carrier must call no method of the Mux from within Control or Bulk.
// The sent functions take no lock and may be called from anywhere.
//
// # Limits
//
// They stand with their reasons in limits.go: 8 streams a socket, 64 KiB a
// chunk, 1 MiB of credit, 256 KiB queued for sending, 10 s to open, 60 s
// without progress.
package stream
