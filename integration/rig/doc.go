// Package rig puts a relay, as the built program in a process of its own, between
// simulated peers on loopback, for tests. It is imported by tests only.
//
// # How to use it
//
//	func TestMain(m *testing.M) { rig.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		r := rig.New(t)              // a Cloudly, a proxy, a relay that runs
//		r.WaitReady()
//		a := r.Node("node-a")        // a simulate.Pallet with a session
//		_, err := a.Send(r.Soon(), method, body)
//		r.Upstream.Outage()          // and so on
//	}
//
// The relay is built once a test process, with the race detector where the test
// has it. BinaryVariable and OverlayVariable put another one in its place.
//
// # What it promises
//
// No relay outlives the test that started it: it is ended by its own process id,
// and by the kernel when the test process dies. Every wait has a deadline. A test
// that fails shows the end of the relay's output.
//
// At its end every test asserts what always holds: the relay exits with 0 on
// SIGTERM, has written no file, has shown none of the secrets that the rig knows
// (AssertNoMarkers), no data race, no panic, and its peers noticed nothing that
// the contract forbids (AssertNoViolations).
//
// A marker is a secret of 64 hexadecimal digits which is recognised as it is, in
// base64, in hexadecimal and as Go prints bytes, also when it was cut, down to 27
// digits in a row.
//
// # What it never does
//
// It reads nothing of the relay's memory and changes nothing of its code. It gives
// the relay none of this process's environment. It asserts no times; what has a
// limit in the contract is waited for by Within.
//
// # Goroutines
//
// Those of Upstream, of the simulated peers and of the processes are ended and
// waited for when the test ends. The methods of a Rig belong to the test's own
// goroutine; those of Upstream and of the simulated peers to any.
//
// # Lock order
//
// Upstream.mu, secrets.mu, ledger.mu and capture.mu are leaves: none is held while
// another is taken, or during a wait.
//
// # State
//
// The one state that outlives a test is the built relay, which Main removes.
//
// # Limits
//
// maxOutput of a relay's output, maxPage of a page, maxFrame of a message to a raw
// socket, buildWait, startWait, stopWait and DefaultWait.
package rig
