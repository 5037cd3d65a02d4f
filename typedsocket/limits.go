package typedsocket

import "time"

// Limits of a socket. A zero field takes the default that stands beside it.
type Limits struct {
	// Frame is the largest message a peer may send, in bytes. A larger text
	// message is refused by name when it is a request whose ids could be
	// read, as far as Close allows (contract §19). Default DefaultFrame.
	Frame int
	// Close is the size, in bytes, above which a message ends the socket with
	// 1009. It is never below Frame; the default is Frame itself.
	Close int
	// Own, Flow and Flows bound the memory of frames that wait to leave, in
	// bytes: own frames, one flow, all flows together.
	Own, Flow, Flows int
	// Pending bounds the calls and forwards that wait for an answer of the peer.
	Pending int
	// Serving bounds the peer's requests that wait for an answer of ours, and
	// ServingBytes the memory of those that are neither answered nor forwarded.
	Serving, ServingBytes int
	// Unread, when it is not 0, is how many bytes of own frames may wait to leave
	// while the peer is read. Above it the reader waits, before the next message,
	// until the peer has taken what it caused: it cannot make us answer faster
	// than it reads. The silence of a peer that is not read counts as any other
	// does. SetUnreadLimit changes it.
	Unread int
}

const (
	// DefaultFrame is a node's bound: 1 MiB of canonical content, whose wire
	// text may use longer escapes, and an answer may repeat its request
	// (contract §19).
	DefaultFrame = 4 << 20

	// DefaultOwn holds a largest answer of ours (a route table of 15 MiB,
	// design §4) and what is queued beside it.
	DefaultOwn = 24 << 20

	// DefaultFlow is what one node may have in flight (contract §19), and room
	// for one largest frame in memory of its size class.
	DefaultFlow = 8<<20 + 1<<20

	// DefaultFlows is the bound of all bytes in flight (contract §19).
	DefaultFlows = 256 << 20

	// DefaultPending lets 256 nodes have 64 requests each in flight
	// (contract §16), and leaves a sixteenth for the relay's own calls.
	DefaultPending = 256*64 + 1024

	// DefaultServing bounds what a peer can make us work on at once. The rooms
	// above hold lower bounds with names of their own (64 a node).
	DefaultServing = 4096

	// DefaultServingBytes is the bound of all bytes in flight (contract §19).
	DefaultServingBytes = DefaultFlows
)

// Timers of a socket.
const (
	// PingEvery is the distance of two pings (contract §14).
	PingEvery = 20 * time.Second

	// DeadAfter is the silence after which a peer counts as gone (contract §14).
	DeadAfter = 60 * time.Second

	// pingGrace is how long the first ping of a silence must have been out
	// before the silence counts: two more pings have followed it then. It
	// matters only when pings could not leave because a large frame was on its
	// way to a slow peer, which is then reading, and so alive.
	pingGrace = 2 * PingEvery

	// writeGrace is the least a write gets for one piece of at most writeStep
	// bytes, however long the peer has been silent. While it was heard of
	// lately the write may take until the silence reaches DeadAfter: pings go
	// between pieces, so a peer that reads slowly answers them.
	writeGrace = PingEvery

	// flushWait bounds how long a closing socket goes on sending what was
	// queued before Close, and closeWait how long it then waits for the peer's
	// half of the closing handshake (RFC 6455 §7.1.1).
	flushWait = 2 * time.Second
	closeWait = 2 * time.Second

	// dropWait is how long DropFlows waits for a write in progress: a piece of
	// writeStep takes it at 2 Mbit/s. It leaves most of the second within which
	// an end of custody must be over (contract R20).
	dropWait = 250 * time.Millisecond

	// handshakeWait bounds TCP, TLS and the upgrade of a dial together.
	handshakeWait = 15 * time.Second

	// CallTimeout is how long a call waits for one answer (contract §21 O38).
	CallTimeout = 30 * time.Second
)

const (
	// writeStep is the largest piece given to the kernel under one write
	// deadline, and how much small frames are gathered into one write: four
	// TLS records.
	writeStep = 64 << 10

	// writeSlack lets the last few bytes of a frame leave with the piece before
	// them: a stream chunk of 64 KiB has 30 bytes of headers.
	writeSlack = 1 << 10

	// gatherBelow is the size from which a frame is written from where it
	// lies. Below it a copy is cheaper than a write of its own.
	gatherBelow = 16 << 10

	// firstRead is the memory a message gets before its size is known, and
	// readAhead the most it gets because the one before was as large: enough
	// for the chunks of a stream and most reports.
	firstRead = 4 << 10
	readAhead = 256 << 10

	// maxRetries is how often a call is sent again when the peer asks for it,
	// the default of TypedRequest 8 (typedsocket.md §1.3).
	maxRetries = 3

	// maxRetryWait is the longest wait before a retry that a call agrees to.
	// TypedRequest 8 lets a peer ask for 24 days; a call has a deadline.
	maxRetryWait = 5 * time.Minute

	// maxTagName and maxTagPayload bound what a peer may set as a tag, in
	// bytes; tags are acknowledged and not kept.
	maxTagName    = 256
	maxTagPayload = 16 << 10

	// maxHandshakeHeader bounds the header of a server's answer to an upgrade.
	maxHandshakeHeader = 64 << 10
)

func (l Limits) withDefaults() Limits {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&l.Frame, DefaultFrame)
	set(&l.Own, DefaultOwn)
	set(&l.Flow, DefaultFlow)
	set(&l.Flows, DefaultFlows)
	set(&l.Pending, DefaultPending)
	set(&l.Serving, DefaultServing)
	set(&l.ServingBytes, DefaultServingBytes)
	l.Close = max(l.Close, l.Frame)
	return l
}
