// Package contract is the vocabulary that the relay shares with its peers:
// identifiers and scalars, canonical JSON and digests, protocol offers and
// refusals, the method catalogue, the limits, and one message a file for what
// the relay itself reads or writes.
//
// # What it promises
//
// A reader decodes a body once, in one walk, into a value that owns its memory,
// and judges that value: ReadX returns either a whole X or an *InvalidError
// with one named reason for each violation. Objects are read with exact keys;
// unknown, missing and duplicate members are refused at every level, names
// compared after unescaping and with exact case. Invalid UTF-8, malformed JSON,
// data after the value and nesting beyond MaximumDepth are refused everywhere.
// Lone surrogates are refused in every name and string that is read. Exceptions
// are stated where they are made: documents of which the relay reads a part
// (openObject), peers' accepted answers (answer), bodies of which one member is
// read before anything else (onlyMembers), and members that the contract passes
// opaque (Raw), inside which duplicates and lone surrogates pass.
//
// Shape and rules are apart. A message's shape names its members and their
// kinds; its Validate judges grammars, bounds and relations between members of
// the decoded value. Validate also judges values that this program made itself.
//
// A reason is "path: rule" and never quotes a value. An unknown member's name is
// repeated only when it is short and plain and the body bears no secret.
// Secrets are kept as Secret and opaque members as Raw; both print as
// placeholders.
//
// A writer, AppendJSON, writes members in contract order, strings as
// JSON.stringify writes them, and leaves out optional members that are absent.
//
// Canonical JSON, digests and both kinds of equality are held to golden vectors
// that integration/peers/vectors/make.mjs makes with JavaScript's own tools.
//
// # How a message is written down
//
// A message is one file: the struct; shape, which lists its members with their
// readers; judge, which lists its rules; Validate, AppendJSON and ReadX in terms
// of those. reference.go is the smallest example.
//
// # What it never does
//
// It opens no socket, reads no clock, starts no goroutine, logs nothing and
// keeps no state; its tables are immutable. It has no reader for messages that
// the relay only forwards: those travel as their original bytes, which this
// package would narrow to one release (contract §2.3).
//
// # Limits
//
// Everything is read from one body that the carrier has bounded already; see
// limits.go. Lists stop taking elements at a stated limit and at most
// MaximumReasons reasons are kept, so a hostile body costs a small multiple of
// its own size. There are no locks.
package contract
