// Package mutants holds a list of wrong relays, and a test that builds each of
// them and sees the suite notice it: a row of the acceptance table must turn red.
// It is the test of the tests.
//
// A mutant is one text in one file replaced by another, given to the compiler as
// an overlay, so the tree is never changed. Each names the package whose tests
// must notice it and the test that must fail. A mutant whose text is no longer
// found, or that does not compile, is a failure too: it has to be kept up with
// the code.
//
// The run compiles a part of the relay again for each mutant, so it runs where
// RELAY_MUTANTS is set: to all of them, which takes the better part of an hour, or to
// a sample, as in continuous integration.
package mutants
