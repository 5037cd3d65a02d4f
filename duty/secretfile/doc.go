// Package secretfile reads files that hold a secret, in the one way in which all rooms
// do: a bearer, a private key, a node's credential.
//
// What it promises: Read waits for no writer of a pipe; it reads nothing of a file that
// others than its owner may read or write; the memory that it returns is the only copy
// that it made, so that the caller can zero it. No error has anything of what was read.
//
// What it never does: judge the content, trim it, watch the file, or bound the time that
// a file system takes.
//
// It has no goroutines, no locks and no state. The limit is the caller's.
package secretfile
