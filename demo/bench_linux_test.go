package demo

import (
	"syscall"
	"time"
)

// processTime is the CPU time of this process so far, 0 where nobody knows.
func processTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
