//go:build race

package soak_test

// raceEnabled says that these tests run under the race detector, and so does the relay.
const raceEnabled = true

// pace is by how much less often everybody sends than they would otherwise.
const pace = 3
