// Package origincert is where the certificate of the relay's origin comes from,
// and how it is swapped (contract §16, O5; design §7). It has one source so far:
// a PEM chain and its key from two files.
//
// # What it promises
//
// A pair is served only after it was judged whole: the chain has one leaf, first,
// and authorities behind it; the leaf names at least one host, may serve TLS and
// is within its dates; the key belongs to it and its file grants nothing to group
// or others. A pair that fails is refused by a named reason and changes nothing:
// the last good one goes on being served, also past its end, for which there is a
// check. Files that are replaced one after the other cause no refusal in between.
//
// A swap is one atomic store. Handshakes never wait for a file, and connections
// that stand are not touched.
//
// # What it never does
//
// It never shows the key, quotes a file, or keeps the key's text: that memory is
// zeroed once the key was read. It writes no file. It never ends the process: a
// clock that is wrong now may be right later, so dates are judged again at every
// look.
//
// # Goroutines
//
// Run looks at the files every few seconds, in its caller's goroutine. A look
// reads on a goroutine of its own, of which there is never more than one: a file
// system that hangs must not hold up whoever asked. It ends with the read.
//
// # Lock order
//
// One look runs at a time: it holds the token of Files.looking, a channel since
// it waits for files. Files.mu is taken inside it, only to change what is shown;
// GetCertificate takes neither.
//
// # Limits
//
// They stand beside what they bound: maximumFile, readWait, lookEvery.
package origincert
