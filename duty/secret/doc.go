// Package secret knows what secrets look like.
//
// It is the second net under the logger (contract §18): a value that passed
// the grammar of its field is withheld all the same when it has the shape of
// a bearer, a token or a key. Configuration asks it too, before a value of
// the command line or the environment is used.
//
// What it promises: Find is a pure function of its text, takes linear time
// and allocates nothing; every text that contains one of the shapes in full
// is found, whatever stands around it.
//
// What it never does: keep, copy or return the text. It cannot know a
// password that is spelled like a word; it is a net, not the rule. The rule
// is that peers' text is never given to a log or a status at all.
//
// Limits: hexRun and mixedRun, the lengths from which a run of characters
// counts as key material.
package secret
