//go:build !linux

package main

// withoutDumps does nothing: the relay is released for Linux, and builds elsewhere
// for those who work on it.
func withoutDumps() error { return nil }
