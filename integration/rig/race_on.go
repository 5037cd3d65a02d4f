//go:build race

package rig

// raceEnabled says that this test binary, and so the relay it builds, runs under
// the race detector.
const raceEnabled = true
