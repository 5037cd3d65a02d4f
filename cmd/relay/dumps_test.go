//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// tellDumps is a program that prepares as serve does and says what came of it.
func tellDumps() {
	if err := prepare(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	dumpable, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_DUMPABLE, 0, 0)
	fmt.Printf("core %d of %d, dumpable %d, errno %d", limit.Cur, limit.Max, dumpable, errno)
}

// Contract §18: no core dumps.
func TestNoCoreDumps(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "dumps")
	cmd.Env = []string{raceEnv + "=" + raceOptions}
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if got, want := string(output), "core 0 of 0, dumpable 0, errno 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
