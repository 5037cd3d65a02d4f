package startup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub"
	"serve.zone/relay/hub/network/networktest"
	"serve.zone/relay/integration/rig"
)

const (
	// requireVariable makes it an error that this machine makes no namespaces. It is that
	// of integration/netns, which needs them too.
	requireVariable = "RELAY_REQUIRE_NETNS"
	// confineLimit bounds a run of confine that becomes no relay.
	confineLimit = 30 * time.Second
)

// confinedPowers are what confine needs where it is not root, in a user namespace.
var confinedPowers = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}

// confining makes a command of this program one that confines itself.
func confining(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, confinedVariable+"=1")
	about := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: unix.CLONE_NEWNS}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		about.Cloneflags |= unix.CLONE_NEWUSER
		about.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		about.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		about.AmbientCaps = confinedPowers
	}
	cmd.SysProcAttr = about
	return cmd
}

// confinable skips the test where a program cannot be confined, and fails it where that
// is required or leaves something to be written.
func confinable(t *testing.T, self string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(folder+"/work", 0o755); err != nil {
		t.Fatal(err)
	}
	nothing, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), confineLimit)
	defer cancel()
	cmd := confining(exec.CommandContext(ctx, self, folder, nothing))
	out, err := cmd.CombinedOutput()
	ended := &exec.ExitError{}
	switch {
	case err == nil:
	case errors.As(err, &ended) && ended.ExitCode() != cannotConfine:
		t.Fatalf("confine: %v\n%s", err, out)
	case os.Getenv(requireVariable) == "1":
		t.Fatalf("%s=1, and this machine confines nothing: %v\n%s", requireVariable, err, out)
	default:
		t.Skipf("this machine confines nothing: %v: %s", err, out)
	}
}

// R96, R97: a relay that is not root, has no capability in any of its sets and can get
// none, and all of whose mounts are read only, so that it can write neither to its own
// folder nor to /tmp or /dev/shm, starts, registers, carries a node's messages, holds a
// network, comes back after a loss, is ready by the same checks as elsewhere, and ends with 0.
func TestR96_R97_ReadOnlyAndWithoutPrivileges(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	confinable(t, self)
	r := rig.New(t, rig.With("hub-listen", "127.0.0.1:0"))
	r.WaitReady()
	network := networktest.Grid(2, 1)
	for i := range network.Nodes {
		network.Nodes[i].ExpiresAt = time.Now().Add(time.Hour).UnixMilli()
	}
	wantHeld := func(revision int64) {
		t.Helper()
		network.Revision = revision
		answer, err := r.Cloudly.ApplyNetwork(r.Soon(), network)
		if err != nil || answer.State != contract.VPNNetworkIdle || answer.AppliedRevision != revision {
			t.Errorf("the network was answered %+v, %v", answer, err)
		}
	}
	wantHeld(1)
	elsewhere := checksOf(r.Readiness())

	cmd := confining(command(t, r, self, r.Dir()))
	for _, texts := range [][]string{cmd.Args[3:], cmd.Env} {
		for i := range texts {
			texts[i] = strings.ReplaceAll(texts[i], r.Dir(), confinedRoot)
		}
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("confined it wrote:\n%s", log.Bytes())
		}
	})
	w := start(t, cmd)
	w.waitReady(r)
	w.wantConfined()
	wantHeld(2)
	node := r.Node("node-a")
	wantCarried := func() {
		t.Helper()
		if _, err := node.Send(r.Soon(), report, member); err != nil {
			t.Errorf("a report: %v", err)
		}
	}
	wantCarried()
	r.Upstream.Cut()
	waitSequences(t, r, 0, 0, 1)
	w.waitReady(r)
	if err := node.Register(r.Soon()); err != nil { // as behind every loss
		t.Errorf("node-a was refused: %v", err)
	}
	wantCarried()
	if s := rig.SectionOf[hub.Status](r, hub.Name); s.Network == nil || s.Network.Revision != 2 || len(s.Members) != 2 {
		t.Errorf("the hub shows %+v", s)
	}
	if page := r.Get("/readyz"); page.Code != 200 {
		t.Errorf("/readyz answers %d %s", page.Code, page.Body)
	}
	if here := checksOf(r.Readiness()); !slices.Equal(here, elsewhere) {
		t.Errorf("the checks are %q, elsewhere %q", here, elsewhere)
	}
	w.wantStops()
	if bytes.Contains(log.Bytes(), []byte("read-only file system")) {
		t.Errorf("it tried to write:\n%s", log.Bytes())
	}
}

// checksOf returns the checks and what became of each.
func checksOf(r rig.Readiness) (all []string) {
	for _, f := range r.Findings {
		all = append(all, fmt.Sprint(f.Duty, "/", f.Check, " ", f.State))
	}
	return all
}

// wantConfined holds the relay itself, as the kernel sees it, to what confine was to do.
func (w *twin) wantConfined() {
	w.t.Helper()
	process := fmt.Sprint(w.cmd.Process.Pid)
	text, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		w.t.Fatal(err)
	}
	status := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		status[name] = strings.Fields(value)
	}
	if name := status["Name"]; len(name) != 1 || name[0] != "relay" {
		w.t.Fatalf("the process is %q", name)
	}
	const none = "0000000000000000"
	for name, want := range map[string]string{
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none, "NoNewPrivs": "1",
	} {
		if got := status[name]; len(got) != 1 || got[0] != want {
			w.t.Errorf("%s of the relay is %q, want %s", name, got, want)
		}
	}
	for _, name := range []string{"Uid", "Gid"} { // real, effective, saved, of files
		if got := status[name]; len(got) != 4 || slices.Contains(got, "0") {
			w.t.Errorf("%s of the relay is %q", name, got)
		}
	}
	if os.Getuid() != 0 {
		return // to whom the mounts of what cannot be traced are not shown; confine has looked
	}
	if got := status["Groups"]; len(got) != 0 {
		w.t.Errorf("the relay is in the groups %q", got)
	}
	all, err := mounts(process)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range all {
		if !m.readOnly {
			w.t.Errorf("of the relay's mounts %s is %s", m.at, m.options)
		}
	}
}
