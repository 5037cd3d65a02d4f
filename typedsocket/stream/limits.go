package stream

import "time"

const (
	// MaxStreams bounds the streams of one socket, both sides' together
	// (contract §14). The relay needs one a node and direction; what is above
	// is refused by name.
	MaxStreams = 8

	// ChunkSize is the largest payload of a data frame: what a stream may put
	// between two text messages at once (design §6).
	ChunkSize = 64 << 10

	// Window is what a receiver lets a sender send ahead of its reading. It
	// covers 1 Gbit/s at a round trip of 8 ms (contract §14).
	Window = 1 << 20

	// MaxQueued bounds the memory of a stream's frames that wait in the
	// carrier: four full chunks, 256 KiB of payload. Enough to keep a writer
	// busy while the next chunk is read, and few enough that a stream which is
	// aborted has little left to send.
	MaxQueued = 4 * chunkMemory

	// chunkMemory is what the buffer of a full chunk takes.
	chunkMemory = ChunkSize + 1<<10

	// MaxStreamID bounds a streamId in UTF-16 units (typedsocket.md §1.9). In
	// UTF-8 that is at most three bytes a unit.
	MaxStreamID      = 256
	maxStreamIDBytes = 3 * MaxStreamID

	// MaxDescriptor bounds a descriptor's JSON, in bytes. Nothing in it needs
	// more than a few hundred; transport is opaque and may be anything.
	MaxDescriptor = 64 << 10

	// MaxReason bounds the text of an abort or reject, in bytes of UTF-8: a
	// sentence, never a document.
	MaxReason = 1 << 10

	// MaxReceipt bounds a receipt, in bytes. Ours takes about 200 and at most
	// 1,800 with the longest streamId.
	MaxReceipt = 4 << 10

	// MaxStrayAnswers bounds how often in its life a socket answers frames of no
	// stream. Their senders are at fault, or late; without a bound a peer that
	// reads nothing could fill the socket's own queue with our answers.
	MaxStrayAnswers = 1 << 10

	// MaxTotal is the largest count of bytes: what a JSON number holds exactly
	// (typedsocket.md §1.9).
	MaxTotal = 1<<53 - 1

	// OpenLimit is how long a published descriptor waits for the peer to open
	// it (typedsocket.md §1.9).
	OpenLimit = 10 * time.Second

	// IdleLimit is how long a stream may make no progress while this side
	// waits for some. It equals the silence after which a socket counts as
	// dead, so a stream never outlives a peer by more than one such silence.
	IdleLimit = 60 * time.Second

	// emptyReads is how often in a row a source may return nothing and no
	// error before ReadFrom gives up, as in bufio.
	emptyReads = 100
)
