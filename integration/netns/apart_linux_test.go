package netns_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serve.zone/relay/integration/rig"
)

const (
	// requireVariable makes a lack of what the tests need an error.
	requireVariable = "RELAY_REQUIRE_NETNS"

	// insideVariable is set in the process that runs one test in a namespace of its own.
	insideVariable = "RELAY_NETNS_TEST_INSIDE"

	// insideLimit bounds that process. A test takes seconds; the waits in it, of which
	// only one is ever waited for in full, end before.
	insideLimit = "90s"
	// insideKill is for a process that does not end by itself then.
	insideKill = 100 * time.Second
)

// apart runs the test again in a network namespace of its own, which goes with the process
// that has it, and returns true there. Whatever the test makes lives in that namespace or
// in one that a descriptor of that process holds, so that nothing is left of a test
// however it ends.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		home(t).ip("link set lo up")
		return true
	}
	t.Parallel()
	equipped(t)
	program := rig.Program(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+insideLimit)
	cmd.Env = append(os.Environ(), insideVariable+"=1", rig.BinaryVariable+"="+program)
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second

	// The kernel takes the end of this thread for that of the parent (Pdeathsig).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	if errors.Is(err, unix.EPERM) {
		lacking(t, "no right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(insideKill, func() { cmd.Process.Kill() })
	defer kill.Stop()
	err = cmd.Wait()
	text := heard(output.String())
	switch {
	case err == nil && verdict(t, "SKIP").MatchString(output.String()):
		lacking(t, "in the namespace:\n%s", text)
	case err != nil || !verdict(t, "PASS").MatchString(output.String()):
		t.Errorf("in the namespace: %v\n%s", err, text)
	case testing.Verbose():
		t.Logf("in the namespace:\n%s", text)
	}
	return false
}

// heard is what the process inside says, but for the lines that the testing package adds:
// whoever counts tests by them would take them for this process's own.
func heard(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") && line != "PASS\n" && line != "FAIL\n" {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// verdict finds what the process inside says of the test.
func verdict(t *testing.T, what string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^--- ` + what + `: ` + regexp.QuoteMeta(t.Name()) + ` `)
}

// equipped skips the test where the machine lacks what every test here needs.
func equipped(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		lacking(t, "not root: no network namespaces and no TUN interfaces")
	}
	if device, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		lacking(t, "no TUN: %v", err)
	} else {
		device.Close()
	}
	for _, tool := range []string{"ip", "ping", "iperf3", "nft", "conntrack"} {
		if _, err := exec.LookPath(tool); err != nil {
			lacking(t, "%v", err)
		}
	}
}

// lacking skips the test, or fails it where nothing may be lacking.
func lacking(t *testing.T, format string, values ...any) {
	t.Helper()
	if os.Getenv(requireVariable) == "1" {
		t.Fatalf(requireVariable+"=1: "+format, values...)
	}
	t.Skipf(format, values...)
}
