package impair

import "time"

const (
	// maxWaiting bounds the bytes that wait in one direction, entries included: half a
	// second of 64 Mbit/s.
	maxWaiting = 4 << 20

	// entryCost is what one that waits costs beside its bytes.
	entryCost = 128

	// defaultBuffer bounds what waits for Path.Rate where Path.Buffer says nothing: a
	// small router's.
	defaultBuffer = 64 << 10

	// maxFlows bounds the clients at a time. The one that was silent for longest gives
	// way, as in a NAT's table: a client that dials again has a new address each time.
	maxFlows = 256

	// maxDelay bounds each part of a delay, so that a mistake in a test is an error and
	// no hang.
	maxDelay = 10 * time.Second

	// socketBuffer is what the kernel is asked to hold for each socket; it may give less.
	socketBuffer = 1 << 20

	// maxDatagram is the longest UDP payload there is.
	maxDatagram = 1 << 16

	// maxReadErrors is how many reads of a socket may fail in a row before it is given up.
	maxReadErrors = 100
)
