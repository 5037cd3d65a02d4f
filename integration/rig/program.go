package rig

import "testing"

// Program returns the path of the relay that this test process runs, which is built the
// first time: for tests that start it by another verb than serve, or hand it on to a
// process of their own by BinaryVariable.
func Program(t testing.TB) string {
	t.Helper()
	path, err := relayBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
