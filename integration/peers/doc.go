// Package peers starts the real Node peers of the folder typedrequest8 for tests: TypedRequest 8.0.3 and 3.3.0, as
// servers and as clients. It is imported by tests only.
//
// It promises: a peer never outlives the test that started it (its stdin closes, then it is killed by its own
// process id), every wait has a deadline, and what a peer wrote is shown when a test fails. A machine without Node
// or without the installed packages skips such tests with the reason; with RELAY_REQUIRE_PEERS=1 they fail instead,
// so that continuous integration cannot pass by skipping.
//
// It never installs anything: integration/peers/setup does.
//
// Limits: 64 MiB of events that no test has awaited, the last 64 KiB of stdout and stderr, 1 min for one event,
// 5 min for a process.
//
// Lock order: eventLog.mu and tail.mu are leaves; neither is held while the other is taken.
package peers
