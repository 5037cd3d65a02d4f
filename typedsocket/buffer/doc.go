// Package buffer holds one WebSocket message in one piece of memory, with
// room on both sides of the payload.
//
// A relay reads a frame, keeps a slice of it and sends that slice on under a
// new envelope. With room in front and behind, the new head and tail are
// written around the slice where it lies, and the frame header in front of
// them: the payload is never copied, and it leaves in one write.
//
// What it promises: a Buffer has one owner at a time; Release returns its
// memory to a pool of its size class and, when Erase was asked for, zeroes it
// first (contract §7.1: a node's bearer is not retained). What it never does:
// share memory between two owners, or look at the bytes.
//
// Limits: memory is kept in pools up to the largest size class
// (largestClass); a larger message has memory of its own, which the garbage
// collector takes back.
package buffer
