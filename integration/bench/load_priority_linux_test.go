package bench

import (
	"os"
	"strconv"
	"syscall"
	"testing"
)

// driverNice is how far the driver steps back behind what it measures.
const driverNice = 10

// yieldCores lets the processes that were started before have a core whenever
// they need one, as on a machine of their own, although this one plays 256 nodes
// and Cloudly on the same cores. The end of the benchmark takes it back where that
// is permitted, to root; elsewhere the rest of this process and what it starts
// stay behind, on both sides of every ratio.
func yieldCores(b *testing.B) {
	setNice(driverNice)
	b.Cleanup(func() { setNice(0) })
}

// setNice is for every thread, since Linux has no such thing for a process.
func setNice(nice int) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, task := range tasks {
		if id, err := strconv.Atoi(task.Name()); err == nil {
			syscall.Setpriority(syscall.PRIO_PROCESS, id, nice)
		}
	}
}
