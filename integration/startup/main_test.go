// Package startup_test holds the built relay, as a process between simulated peers on
// loopback, to the acceptance rows about its own life (contract §22): what it refuses
// to start with (R04, R07, R11, R14), how it registers (R12 to R19), what ends custody
// and what does not (R20 to R27), its certificate (R91), its secrets (R94), what it
// tells an operator (R95), what it needs of its surroundings (R96), and how it ends (R97).
//
// Times of minutes and hours, such as the 300 s after a refusal, are held by package
// appliance with an injected clock. Usage, exit codes of a bad command line and the
// wording of single violations are held by cmd/relay's scripts. Neither is repeated
// here: these tests are about what only a process on real sockets can get wrong.
//
// The budget "start to registered" and the memory of a node session are printed and
// not judged: the machine is shared.
package startup_test

import (
	"flag"
	"os"
	"testing"

	"serve.zone/relay/integration/rig"
)

// atOnce is how many tests run at a time when -parallel does not say: they wait for
// most of their time, so that more of them fit than there are cores.
const atOnce = "4"

// confinedVariable is set where this program is to confine itself and become a relay.
const confinedVariable = "RELAY_STARTUP_TEST_CONFINED"

func TestMain(m *testing.M) {
	if os.Getenv(confinedVariable) != "" {
		os.Exit(confine(os.Args[1:]))
	}
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	rig.Main(m)
}
