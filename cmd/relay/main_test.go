package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// leakChecked is testing.M, with goroutines looked for when all tests have passed.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// raceEnv keeps processes of a test binary with the race detector from resting a
// second each before they exit.
const raceEnv, raceOptions = "GORACE", "atexit_sleep_ms=0"

// The test binary is the program as well, under the name relay, for scripts and
// for tests that need a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"relay": main, "dumps": tellDumps})
}
