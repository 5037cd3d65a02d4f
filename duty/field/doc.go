// Package field is the allow-list of what a log line, an event or a check may
// say (contract §18). A Field can only be made by one of its constructors;
// each has one key, one grammar and one bound, so a line can carry a node id
// or a byte count and nothing that has no constructor here.
//
// What it promises: the text of a Field is printable ASCII, fits the grammar
// and the bound of its key and does not look like a secret (package secret).
// A text that does not fit is replaced by Withheld, whole, and says so
// through IsWithheld, so that whoever writes it can count it. An error is
// told from its structured parts (Error), never from its text, which may
// quote a peer.
//
// What it never does: hold a peer's bytes, print a value by fmt, call a
// String method of a foreign type.
//
// The keys are API: operators' queries and dashboards use them. Keys lists
// them with what each one means.
//
// Limits: the bound of every key stands in the table rules; an error's text
// ends at maxError, a stack at maxFrames.
//
// A grammar cannot know a password that is spelled like a node id. So a
// constructor is given only the value it names: never "some text of the peer"
// in the hope that its grammar will sort it out.
package field
