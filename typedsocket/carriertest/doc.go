// Package carriertest is what tests of the carrier, and of the rooms that
// stand on it, share: a network inside the process, on which fake time
// advances, a bubble of fake time that counts message buffers, and a search for
// what a room must not hold.
//
// It is imported by tests only. It promises that connections of Dial are
// pipes without a buffer, so that a test sees each write wait for its read,
// and that the ends of a Pipe hold what they were told to, as a socket does. It
// never touches a real socket, and starts a goroutine for the deadlines of a
// Pipe alone.
package carriertest
