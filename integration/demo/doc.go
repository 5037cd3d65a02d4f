// Package demo runs the built program's verb demo as a newcomer does: whole, in text and
// for programs, with each of its misbehaviours, and with a signal in the middle. It has
// no code outside its tests.
//
// # What it promises
//
// A demonstration runs in a process of its own, with nothing of this process's
// environment but a folder for temporary files, in which nothing may be left. What it
// prints is read as a program would, and searched for the secrets that lie in its folder
// while it runs. Its download is small here; continuous integration runs it as it is.
//
// # What it never does
//
// It looks into no step: whether a step notices what it says is for package demo's own
// tests, and for the misbehaviours here.
package demo
