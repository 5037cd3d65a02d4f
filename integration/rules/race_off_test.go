//go:build !race

package rules

import (
	"os"
	"os/exec"
	"testing"
)

const raceEnabled = false

// Without the detector the canary must end well, or its exit code would prove nothing.
func TestCanaryEndsWellWithoutTheDetector(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), canaryVariable+"=1")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
