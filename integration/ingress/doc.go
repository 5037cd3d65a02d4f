// Package ingress holds the built relay, as a process between a simulated Cloudly and
// simulated ingresses on loopback, to the acceptance rows about the cluster ingress
// (contract §11, §22): R68 to R76, and what R01, R03 to R05, R20 to R25 and R93 say of
// the route table, of an ingress's registration and of its counters. It has no code
// outside its tests.
//
// # What it promises
//
// Messages are compared byte for byte at both ends of the relay. Where bytes have to
// cross untouched they are spelled as no encoder spells them, so that one that wrote
// them anew would be noticed.
//
// A test that says "nothing came" asks for something behind it on the same socket, or
// lets the next thing of its kind follow, and looks at what came before.
//
// Every key, password and bearer is a secret of its own, which the rig looks for in
// everything that the relay shows and writes. What is left in its memory is looked for
// on Linux alone.
//
// R76 is held by an HTTP client that visits a hostname through the ingress, over TLS
// with the certificate of the table that is held.
//
// # What it never does
//
// It waits for no minutes: waits that are longer than some seconds are held by package
// appliance in a fake time. What becomes of messages that cross is held by the packages
// ingress and contract in every order; here each happens once.
//
// # Limits
//
// atOnce is how many tests run at a time, closeWait what is waited for the end of a
// socket after custody has ended.
package ingress
