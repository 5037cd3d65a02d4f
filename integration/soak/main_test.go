package soak_test

import (
	"flag"
	"strconv"
	"testing"

	"serve.zone/relay/integration/rig"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !raceEnabled {
		// What these tests do is wait. Under the race detector they do not.
		flag.Set("test.parallel", strconv.Itoa(sideBySide))
	}
	rig.Main(m, "failpoints")
}

// sideBySide is how many tests run at a time: all that start a relay.
const sideBySide = 6
