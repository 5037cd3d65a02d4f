//go:build linux

package startup_test

import (
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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.PID()))
	if err != nil {
		t.Fatal(err)
	}
	arguments := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")[1:]
	call := append(append(surroundings, rig.Program(t)), arguments...)
	cmd := exec.Command(call[0], call[1:]...)
	// As the rig does: the kernel shows the environment of a relay to root alone.
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + r.Path("home"), "TMPDIR=" + r.Path("tmp"), "GORACE=atexit_sleep_ms=50"}
	cmd.Dir = r.Path("work")
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
