package rules

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A run's name is no proof that its race detector is on. The canary runs this very test binary once more with a
// program that races for certain, and expects the detector's report and its exit code.

const (
	canaryVariable = "RELAY_RACE_CANARY"
	// requireVariable, set to 1, makes a run without the detector fail instead of skip.
	requireVariable = "RELAY_REQUIRE_RACE"
	// detectorExit is the exit code asked of the detector; a test that merely fails ends with 1.
	detectorExit = 66
)

func TestMain(m *testing.M) {
	if os.Getenv(canaryVariable) == "1" {
		os.Exit(deliberateRace())
	}
	os.Exit(m.Run())
}

// deliberateRace writes one variable from two goroutines with nothing between them, and returns 0: only the
// detector can end it otherwise.
func deliberateRace() int {
	shared := new(int)
	done := make(chan struct{})
	go func() {
		*shared = 1
		close(done)
	}()
	*shared = 2
	<-done
	return 0
}

func TestRaceDetectorIsOn(t *testing.T) {
	switch raceVerdict(raceEnabled, os.Getenv(requireVariable)) {
	case skip:
		t.Skip("built without -race; " + requireVariable + "=1 makes this a failure")
	case fail:
		t.Fatal(requireVariable + "=1, but this run is built without -race")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), canaryVariable+"=1", "GORACE=halt_on_error=1 exitcode=66")
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != detectorExit {
		t.Fatalf("a certain race ended with %v, want exit code %d\n%s", err, detectorExit, output)
	}
	if !strings.Contains(string(output), "WARNING: DATA RACE") {
		t.Errorf("no report of the race:\n%s", output)
	}
}

type verdict string

const (
	run  verdict = "run"
	skip verdict = "skip"
	fail verdict = "fail"
)

// raceVerdict decides what a run does that was or was not built with the detector.
func raceVerdict(enabled bool, require string) verdict {
	switch {
	case enabled:
		return run
	case require == "1":
		return fail
	default:
		return skip
	}
}

func TestRaceVerdict(t *testing.T) {
	for _, test := range []struct {
		enabled bool
		require string
		want    verdict
	}{
		{true, "", run}, {true, "1", run},
		{false, "", skip}, {false, "0", skip}, {false, "1", fail},
	} {
		if got := raceVerdict(test.enabled, test.require); got != test.want {
			t.Errorf("raceVerdict(%v, %q) = %s, want %s", test.enabled, test.require, got, test.want)
		}
	}
}
