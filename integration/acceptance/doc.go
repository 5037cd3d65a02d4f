// Command acceptance writes docs/acceptance.md: which rows of the contract's feature table (§22, R01 to R97) are held, by
// which tests, and what each of those tests asserts. It is run by contributors and by continuous integration:
//
//	go test -json -count=1 ./... >run.json
//	go run ./integration/acceptance -json run.json -o docs/acceptance.md
//	go run ./integration/acceptance -json run.json -check docs/acceptance.md
//
// and, as a filter that shows a run as go test does without -json:
//
//	go test -json ./... | go run ./integration/acceptance -show
//
// # What a test has to do with a row
//
// A test bears its rows in its name, TestR61_R62_…, and begins its comment with them, ranges allowed, and a sentence that
// says what it asserts:
//
//	// R61, R62: a member's key connects, an unknown one does not.
//
// The rows that count are those of the comment. A subtest may bear rows of its own at the front of its name, "R47 node".
// Bug reports, TestB031_…, are written in the same way and make a table of their own. References such as O9 or
// "contract §9.3" may stand among the numbers of a comment and are not read.
//
// # What it promises
//
// A row counts by a test that ran and passed in the run that it is given: a skipped one is shown as skipped, and a run
// makes no page at all that failed, was cut off, came out of the cache or lacks a numbered test of the tree. A row whose
// room exists (the table of rooms in docs/architecture.md) makes no page either as long as no test of the relay holds it;
// one whose room comes later may not be claimed by a test of more than the vocabulary. Tests of the simulated peers are
// shown and hold nothing: they say that the judge is right, not the relay.
//
// The page is the same for the same tree and the same results: it holds no times, no versions and no line numbers, and
// the order of the events is nowhere in it.
//
// # What it never does
//
// It runs no test and starts no goroutine and no process. It judges no sentence: that a comment says what its test
// asserts is for its readers to see.
//
// # Limits
//
// A line of a run is read whole; there is no bound besides, since the input is the contributor's own.
package main
