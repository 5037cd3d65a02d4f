// Package envelope reads and writes the TypedRequest 8 envelope: one JSON
// object a message, the same for requests and answers.
//
// It promises three things.
//
//   - [Scan] reads a frame once and says whether it is well-formed JSON within
//     the rules below, where the members of its envelope lie, and the few facts
//     about its body that a forwarding relay decides by. Bodies are never
//     decoded, and what it hands out are the peer's own bytes.
//   - [ReadError] and [ReadRetry] read the two members that tell a failure.
//   - The Append functions compose an envelope around the bytes of a body, so
//     that a body can be forwarded without being encoded again.
//
// It never does I/O, starts no goroutine, holds no lock and keeps no reference
// to a frame other than in the [Frame] the caller owns. Its errors name a rule
// and an offset and never quote a peer's text.
//
// # Rules of a frame
//
// Everywhere: the grammar of RFC 8259, valid UTF-8, nesting of at most
// [MaxDepth], no data behind the object.
//
// Names are compared after unescaping, in exact case. The levels of a frame
// differ in what else they are held to:
//
//	level                          duplicate name   __proto__   lone surrogate
//	the envelope                   refused          refused     refused
//	correlation, error, retry      refused          allowed     refused
//	request, response (top level)  refused          allowed     refused
//	session of a body, any depth   refused          refused     refused
//	everything else                allowed          allowed     allowed
//
// A lone surrogate is a \uD800–\uDFFF escape without its other half, in a name
// of the level or in a string that stands directly in it; JSON.stringify
// writes them, so they pass deeper in a body that is only forwarded. A level
// whose names must differ holds at most [MaxNames] names.
//
// # Limits and cost
//
// The scan is one walk over the text after one check of its UTF-8. Below the
// strict levels of the table it is a loop with one bit of state a level.
// Strict levels are read by recursion, which only session can drive deeper
// than three calls, and which [MaxDepth] bounds. Names are compared pairwise
// up to 16 a level and sorted above that, so a hostile frame costs
// O(n log n). A scan that reuses its Frame allocates only for the error it
// returns, for the few texts it hands out when they are written with escapes,
// and when a level has more names than any before.
package envelope
