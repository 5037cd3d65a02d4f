package envelope

import "math"

const (
	// MaxDepth is the deepest nesting of objects and arrays; the envelope
	// itself is depth 1 (contract §19).
	MaxDepth = 64

	// MaxNames is the highest number of names on a level whose names must
	// differ. The widest body of the contract's own has some tens; a peer's
	// map keyed by something lies deeper. It bounds what a level can make us
	// remember.
	MaxNames = 4096

	// MaxMethodBytes bounds the text of method. The longest name of the
	// contract has 41 bytes.
	MaxMethodBytes = 128

	// MaxIDBytes bounds correlation.id and requestInstanceId as written
	// between the quotes. TypedRequest writes 28 bytes.
	MaxIDBytes = 256

	// MaxNodeIDBytes bounds a nodeId as written between the quotes; a longer
	// one counts as no string. A node id has at most 128 characters (contract
	// §2.1), and an escape writes one of them in at most six bytes.
	MaxNodeIDBytes = 6 * 128

	// MaxTextBytes bounds a frame. Sockets refuse far smaller ones (contract
	// §19); this one keeps offsets within 32 bits.
	MaxTextBytes = math.MaxInt32
)

const (
	// pairwiseNames is how many names of a level are compared one by one.
	// Above it the level is sorted when it ends.
	pairwiseNames = 16

	// keptNames and keptTextBytes are the memory for names, and for the text
	// of those written with escapes, that a Frame keeps from one scan to the
	// next. One hostile frame must not pin memory for the life of its socket.
	keptNames     = 256
	keptTextBytes = 4 << 10
)
