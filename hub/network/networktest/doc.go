// Package networktest makes VPN networks for tests of the hub: small regular ones,
// the largest ones of design §5.5, and random ones that differ from each other
// in every way a successor can differ from its predecessor.
//
// It is imported by tests only. It promises that every network it makes, Beyond
// apart, passes the reader of package contract, and that the same arguments make
// the same network. It starts no goroutine and keeps nothing.
package networktest
