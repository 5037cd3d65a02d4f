// Package endpoint is what duties that listen have in common: a bound on the
// connections that are open at once, and a way to wait until what they serve has
// come to rest.
//
// It promises that a connection above the bound is closed at once and counted,
// that each connection is given back once, and that a wait for rest ends with its
// context. It opens nothing, starts no goroutine and keeps no deadline of its own.
//
// Lock order: the lock of a Work is a leaf.
package endpoint
