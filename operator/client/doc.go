// Package client is the client side of the operator endpoint: what asks a
// running relay how it is (design §8 and §9).
//
// # What it promises
//
// Each call is one request on a connection of its own, ends after Timeout at the
// latest and reads at most MaximumBody bytes. A 503 is told from every other
// failure: NotReadyError is a relay that says it is not ready and why,
// UnavailableError one that cannot answer for the moment, AnswerError any other
// answer than the one asked for, and NoAnswerError none at all. An answer's text is in none of these errors.
//
// Document is what people are shown of /status. It is read leniently, so that a relay of
// another release can be shown as well; Client.Status returns the answer itself.
//
// # What it never does
//
// It follows no redirect, uses no proxy and keeps no connection. It starts no
// goroutine that outlives a call. It has no state; all methods are safe for
// concurrent use.
package client
