// Package queue orders what waits to leave on one socket.
//
// There are two classes. Own frames (the relay's calls, its answers, stream
// control) leave first, in the order they came. Everything else belongs to a
// flow, and flows share the socket by deficit round robin in bytes (Shreedhar
// and Varghese, SIGCOMM 1995): over any stretch of time in which two flows
// both have something to send, the bytes they sent differ by no more than a
// quantum and the largest frame of each. Frames of one flow never overtake each other.
//
// What it promises: bounds in bytes of memory for own frames, for a flow and
// for all flows together; a push beyond a bound is refused with a FullError
// and changes nothing. What it never does: block, drop what it accepted
// (except by Drain and DropFlows), look at the bytes, or start a goroutine.
//
// A Queue is not safe for concurrent use; its socket's mutex guards it.
package queue
