//go:build linux

package startup_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/integration/rig"
)

// twin is a second run of a rig's relay, at the same addresses and between the same
// peers, in surroundings of the test's own. The rig's relay has ended.
type twin struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{}
}

// command returns the command that a rig's relay was started by, behind others that
// prepare its surroundings and then become it. The relay is stopped.
func command(t *testing.T, r *rig.Rig, surroundings ...string) *exec.Cmd {
	t.Helper()
	read := func(name string) []string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", r.PID(), name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", r.PID()))
	if err != nil {
		t.Fatal(err)
	}
	call := append(append(surroundings, program), read("cmdline")[1:]...)
	cmd := exec.Command(call[0], call[1:]...)
	cmd.Env, cmd.Dir = read("environ"), r.Path("work")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if code := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	return cmd
}

// start starts a twin, which ends with the test at the latest.
func start(t *testing.T, cmd *exec.Cmd) *twin {
	t.Helper()
	w := &twin{t: t, cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// Pdeathsig is about the thread that started the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			close(w.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-w.ended
	})
	return w
}

// waitReady waits until the twin is ready, where the rig's relay was.
func (w *twin) waitReady(r *rig.Rig) {
	w.t.Helper()
	r.Eventually("readiness of the second run", func() error {
		select {
		case <-w.ended:
			w.t.Fatalf("it has ended: %v", w.cmd.ProcessState)
		default:
		}
		conn, err := net.DialTimeout("tcp4", r.OperatorAddress(), time.Second)
		if err != nil {
			return err
		}
		conn.Close()
		if !r.Ready() {
			return fmt.Errorf("not ready: %q", r.Readiness().Against())
		}
		return nil
	})
}

// wantStops sends SIGTERM and waits for a clean end within the limit.
func (w *twin) wantStops() {
	w.t.Helper()
	begun := time.Now()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
	select {
	case <-w.ended:
	case <-time.After(rig.DefaultWait):
		w.t.Fatal("it does not end")
	}
	if took := time.Since(begun); took > drainLimit {
		w.t.Errorf("the end took %s", took)
	}
	if code := w.cmd.ProcessState.ExitCode(); code != 0 {
		w.t.Errorf("exit code %d", code)
	}
}

// R97: a standard error that is full, since nobody reads it any more, holds nothing up:
// neither start, nor sessions, nor the end.
func TestR97_StandardErrorIsFull(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	cmd := command(t, r)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	// A page is the least that a pipe holds.
	room, _, failed := syscall.Syscall(syscall.SYS_FCNTL, write.Fd(), 1031 /* F_SETPIPE_SZ */, uintptr(os.Getpagesize()))
	if failed != 0 {
		t.Fatal(failed)
	}
	cmd.Stderr = write
	w := start(t, cmd)
	w.waitReady(r)
	// Reloads are told in lines, until no more of them fits.
	r.Eventually("a full pipe", func() error {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			return err
		}
		var waiting int32
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, read.Fd(), 0x541B /* FIONREAD */, uintptr(unsafe.Pointer(&waiting))); failed != 0 {
			return failed
		}
		// The line that did not fit may have left some room.
		const line = 512
		if int(waiting) < int(room)-line {
			return fmt.Errorf("%d of %d bytes", waiting, room)
		}
		return nil
	})
	node := r.Node("node-a")
	for range 20 {
		if _, err := node.Send(r.Soon(), report, member); err != nil {
			t.Fatalf("a report: %v", err)
		}
	}
	if session := rig.SectionOf[cloudly.Status](r, cloudly.Name); !session.Registered {
		t.Errorf("session: %+v", session)
	}
	w.wantStops()
}

// R96, R97: a relay that can write nowhere starts, registers, carries and ends as any
// other. Its whole file system is read only, and so is the folder it runs in.
func TestR97_NothingCanBeWritten(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.WaitReady()
	// A namespace of mounts, which needs no privilege where user namespaces may be
	// made. The script sees for itself that nothing can be written.
	const script = `dir=$1; shift
mount --bind "$dir" "$dir" && mount -o remount,bind,ro "$dir" && mount -o remount,bind,ro / || exit 97
if (: >"$dir/work/x") 2>/dev/null || (: >"$dir/tmp/x") 2>/dev/null || (: >/x) 2>/dev/null; then exit 98; fi
cd "$dir/work" && exec "$@"`
	surroundings := []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", r.Dir()}
	if out, err := exec.Command(surroundings[0], append(surroundings[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("this machine makes no read-only namespace: %v: %s", err, out)
	}
	cmd := command(t, r, surroundings...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	w := start(t, cmd)
	w.waitReady(r)
	node := r.Node("node-a")
	if _, err := node.Send(r.Soon(), report, member); err != nil {
		t.Errorf("a report: %v", err)
	}
	r.Upstream.Cut()
	waitSequences(t, r, 0, 0, 1)
	w.waitReady(r)
	w.wantStops()
	if bytes.Contains(log.Bytes(), []byte("read-only file system")) {
		t.Errorf("it tried to write:\n%s", log.Bytes())
	}
}
