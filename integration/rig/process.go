package rig

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"time"
)

const (
	// pipeWait bounds the wait for the output of a process that has ended, which a
	// child of it could hold open.
	pipeWait = 5 * time.Second
	// dumpWait is how long a process may take to write its stacks.
	dumpWait = 5 * time.Second
)

// process is one run of a relay.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// wait is what waiting for it said; it may be read once ended is closed.
	wait error
}

// launch starts a process that ends with this one, however this one ends.
func launch(cmd *exec.Cmd) (*process, error) {
	cmd.WaitDelay = pipeWait
	dieWithParent(cmd)
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel takes the end of the thread that started a process for the end of
		// its parent. So that thread stays until the process has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.wait = cmd.Wait()
			close(p.ended)
		}
	}()
	return p, <-started
}

// signal sends a signal, unless the process has ended.
func (p *process) signal(s os.Signal) error {
	select {
	case <-p.ended:
		return os.ErrProcessDone
	default:
		return p.cmd.Process.Signal(s)
	}
}

// kill ends the process at once and waits for it.
func (p *process) kill() {
	p.signal(os.Kill)
	<-p.ended
}

// await reports whether the process has ended within the time.
func (p *process) await(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// exit returns the exit code of a process that has ended, -1 when a signal ended
// it, and what went wrong besides.
func (p *process) exit() (int, error) {
	var failed *exec.ExitError
	if p.wait != nil && !errors.As(p.wait, &failed) {
		return p.cmd.ProcessState.ExitCode(), p.wait
	}
	return p.cmd.ProcessState.ExitCode(), nil
}
