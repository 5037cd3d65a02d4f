package stream

import "serve.zone/relay/typedsocket/buffer"

// Carrier is the socket as the streams see it. It must be safe for concurrent
// use. Neither method blocks or calls back into the Mux. Both take ownership
// of b, also when they fail.
type Carrier interface {
	// Control queues a frame ahead of all bulk frames, behind the control
	// frames before it. An error means that it will never leave: the socket is
	// closed, or its bounded queue is full.
	Control(b *buffer.Buffer) error
	// Bulk queues a frame on the named flow; frames of one flow leave in the
	// order in which they were queued. sent is called once, when the frame has
	// left or was dropped; it does not block. After an error it is not called.
	Bulk(flow string, b *buffer.Buffer, sent func()) error
}
