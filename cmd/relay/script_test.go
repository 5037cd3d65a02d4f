package main

import (
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// runScript runs a script of testdata/script against the program. Scripts have
// two addresses that are taken, TAKEN and TAKEN2: who tries to bind one fails with
// exitFailed.
func runScript(t *testing.T, name string) {
	t.Helper()
	taken := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.Addr().String()
	}
	first, second := taken(), taken()
	testscript.Run(t, testscript.Params{
		Files:               []string{filepath.Join("testdata", "script", name+".txtar")},
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(raceEnv, raceOptions)
			env.Setenv("TAKEN", first)
			env.Setenv("TAKEN2", second)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits is the script command `exits CODE PROGRAM ARGS...`: exec, with the exit
// code compared.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("%v", err)
	}
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func TestVerbs(t *testing.T) { runScript(t, "verbs") }

func TestUsage(t *testing.T) { runScript(t, "usage") }

func TestSecretsInTheOpen(t *testing.T) { runScript(t, "secrets") }

func TestConfigurationIsReadFromItsSources(t *testing.T) { runScript(t, "configuration") }

// R07: the relay's own offer is judged before any port is bound.
func TestR07_OwnOffer(t *testing.T) { runScript(t, "r07_own_offer") }

// R14: each address that cannot be published is refused by its own name.
func TestR14_ListenAddress(t *testing.T) { runScript(t, "r14_listen_address") }

func TestNodeAsACommand(t *testing.T) { runScript(t, "node") }

func TestKeygen(t *testing.T) { runScript(t, "keygen") }

func TestExplainAsACommand(t *testing.T) { runScript(t, "explain") }
