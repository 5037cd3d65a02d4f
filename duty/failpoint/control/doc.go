// Package control is what stands behind package failpoint in a program that was
// built with its tag, Points, and what a test steers it by, Remote. They speak over a
// Unix socket on which the test listens.
//
// # The protocol
//
// Each message is a line. The test asks, one at a time:
//
//	hold PLACE HITS FOR     the next HITS goroutines that come there wait, each for at most FOR
//	release PLACE           none waits there any more, nor will
//	cut CONNS WHICH BYTES   one connection breaks when so many more bytes were written on it
//	mend CONNS              no connection of that name breaks any more that has not yet
//	stall CONNS WHICH FOR   what is read and written on one waits for so long
//	clock OFFSET            the wall clock is so far off
//
// FOR and OFFSET are spelled as time.Duration spells itself. WHICH counts the open
// connections of that name from the oldest, modulo how many there are, and * is each;
// a cut of 0 bytes is one now. The answer is "ok", or "error" and why. Beside answers the
// program says "reached PLACE" for each goroutine that was asked to wait there.
//
// # What it promises
//
// Everything ends by itself: a wait after FOR, which is at most MaximumWait, and all of
// it when the socket ends, the connections that were cut apart. A stalled connection
// heeds its deadlines. One that was cut fails as one that the peer has reset, in both
// directions, and the peer sees a reset too. A program that does not answer a question in
// time is let go, as if the socket had ended: no answer is one to another question.
//
// # What it never does
//
// It logs nothing. It reads no byte of what it stalls.
//
// # Goroutines
//
// Points starts none. Remote has one, which Close ends and waits for.
//
// # Lock order
//
// Points.mu, then a connection's own. No lock is held during a wait, a read or a write,
// but Points.writing, which keeps lines whole and is a leaf.
package control
