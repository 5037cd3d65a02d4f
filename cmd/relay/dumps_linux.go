package main

import (
	"errors"
	"os"
	"syscall"
)

// withoutDumps keeps the process's memory, which holds bearers and keys, out of
// core dumps (contract §18). The limit alone is not enough: the kernel does not
// apply it where core_pattern names a program. A process that is not dumpable has
// no core in either case, and cannot be traced by others of its user; who has
// CAP_SYS_PTRACE still can.
func withoutDumps() error {
	limit := os.NewSyscallError("setrlimit", syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}))
	var dumpable error
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0, 0, 0, 0); errno != 0 {
		dumpable = os.NewSyscallError("prctl", errno)
	}
	return errors.Join(limit, dumpable)
}
