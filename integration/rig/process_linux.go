package rig

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the process when this one ends without
// cleaning up, as after a test's timeout.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
