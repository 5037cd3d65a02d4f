// Package carriertest is what tests of the carrier, and of the rooms that
// stand on it, share: a network inside the process, on which fake time
// advances, and a bubble of fake time that counts message buffers.
//
// It is imported by tests only. It promises that a Network's connections are
// pipes without a buffer, so that a test sees each write wait for its read; it
// never touches a real socket and starts no goroutine.
package carriertest
