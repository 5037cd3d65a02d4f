package node

import "time"

// Bounds of what waits.
const (
	// maxQueued bounds the bytes that wait in each direction, between the device and
	// QUIC: what 100 Mbit/s carry in 20 ms. It is the hub's bound for one member.
	maxQueued = 256 << 10

	// maxBatch bounds how many packets are moved to a device at once, whatever it can
	// take: more gain nothing, and each has deviceRoom.
	maxBatch = 64
)

// Waits.
const (
	// lookEvery is how often the size of the path and parts that wait are looked at.
	lookEvery = time.Second

	// moveWait bounds the proof that another port leads to the hub. QUIC tries it four
	// times meanwhile.
	moveWait = 3 * time.Second

	// moveEvery is the least distance of two moves: the hub's QUIC gives up what it knows
	// of a port when another one is used, and takes 5 s to do so where that did not last.
	moveEvery = 10 * time.Second

	// controlWait bounds the writing of one message on the stream.
	controlWait = 5 * time.Second

	// farewell is what the hub is given to read why the node leaves before the
	// connection is closed: a round trip around the world.
	farewell = 300 * time.Millisecond
)

// The way back (docs/tunnel.md, section 10).
const (
	// stood is how long a tunnel has to be up for the attempts before it to be
	// forgotten. A shorter one is a failure like any other, or a hub that takes a node
	// and drops it would be dialled without a pause.
	stood = 10 * time.Second

	// stoodAlone is how long a tunnel has to be up until it is forgotten that others used
	// the key: longer than another node waits that wants the place.
	stoodAlone = 2 * mostWait

	// mostWait is the longest wait between two attempts, whatever happened and whatever
	// the hub asks for: an operator who has put right what was wrong waits no longer.
	mostWait = 5 * time.Minute

	// spread is what is added at random to a time that the hub names: it names the
	// same one to all its nodes.
	spread = time.Second
)

// Paces of the attempts. Each wait is twice the one before, less a random part of up to
// a half: nodes that failed together do not come back together.
var (
	// usual is the pace where nothing is known to be wrong for long.
	usual = pace{first: 500 * time.Millisecond, most: 30 * time.Second}

	// prompt begins at once: the tunnel was good, and the way to it is likely to be.
	prompt = pace{most: 30 * time.Second}

	// slow is for what others have to put right, which they do in seconds: a hub that
	// has just started learns its network from Cloudly.
	slow = pace{first: 2 * time.Second, most: time.Minute}

	// rare is for what no attempt cures.
	rare = pace{first: 30 * time.Second, most: mostWait}
)
