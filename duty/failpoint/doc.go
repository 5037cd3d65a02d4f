// Package failpoint lets a test make a running relay meet what only luck would
// bring: a connection that breaks in the middle of a frame, a goroutine that waits
// between two steps while the world moves on, a wall clock that is set.
//
// Without the build tag failpoints, which no released program has, every function
// of this package is empty or returns what it was given, and is inlined to nothing;
// neither the names nor the code behind them is in the program then.
// integration/soak reads the program's bytes for them.
//
// # What it promises
//
// With the tag, and with Variable in the environment, Attach connects to the socket
// that is named there, and does from then on what is asked for over it (package
// control). Unless something is asked for, and when that socket ends, nothing is
// held, stalled or cut, and the clock is the system's. Whatever is asked for ends by
// itself, the setting of the clock apart.
//
// # What it never does
//
// It decides nothing: places that call Reach go on as they would. It is no way to
// reach states that the program could not come to by itself. It never runs in a
// released relay.
//
// # A new failpoint
//
// It is one name in name.go and one line where it stands. integration/rules sees
// that each name stands at one place, and that no other package knows the tag.
//
// # Goroutines
//
// Attach starts one that ends with its socket, and so with the process.
package failpoint
