package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// process is a role in a process of its own.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	address string
}

func start(b *testing.B, role, upstream string) *process {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "RELAY_BENCH_UPSTREAM="+upstream)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewScanner(out)}
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	if !p.out.Scan() {
		b.Fatalf("role %s did not start", role)
	}
	p.address = p.out.Text()
	return p
}

// usage is what a process has used so far.
type usage struct {
	cpu                      time.Duration
	allocs, allocated, moved uint64
}

func (p *process) usage(b *testing.B) (u usage) {
	b.Helper()
	u.cpu = cpuOf(b, p.cmd.Process.Pid)
	fmt.Fprintln(p.in)
	if !p.out.Scan() {
		b.Fatal("process gone")
	}
	fmt.Sscan(p.out.Text(), &u.allocs, &u.allocated, &u.moved)
	return u
}

// cpuOf sums the run time of all threads of a process, in nanoseconds as the
// scheduler counts them: /proc/PID/stat counts ticks of 10 ms, which is coarse.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	ran, _ := scheduled(b, pid)
	return ran
}

// scheduled also sums for how long they were ready to run and had no core.
func scheduled(b *testing.B, pid int) (ran, waited time.Duration) {
	b.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, task.Name()))
		if err != nil {
			continue // the thread has ended
		}
		var on, off int64
		fmt.Sscan(string(stat), &on, &off)
		ran += time.Duration(on)
		waited += time.Duration(off)
	}
	return ran, waited
}

// watchOthers returns a function that says how many cores were busy since with
// work of other processes than this one and those given: what a figure is worth.
func watchOthers(b *testing.B, pids ...int) func() float64 {
	look := func() (all, ours time.Duration) {
		stat, err := os.ReadFile("/proc/stat")
		if err != nil {
			b.Fatal(err)
		}
		// user, nice, system, idle, iowait, irq, softirq, steal; in ticks of 10 ms
		for i, field := range strings.Fields(strings.SplitN(string(stat), "\n", 2)[0])[1:9] {
			if ticks, _ := strconv.ParseInt(field, 10, 64); i != 3 && i != 4 {
				all += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
		for _, pid := range append(pids, os.Getpid()) {
			ours += cpuOf(b, pid)
		}
		return all, ours
	}
	allBefore, oursBefore := look()
	begin := time.Now()
	return func() float64 {
		all, ours := look()
		return ((all - allBefore) - (ours - oursBefore)).Seconds() / time.Since(begin).Seconds()
	}
}

func (u usage) minus(v usage) usage {
	return usage{u.cpu - v.cpu, u.allocs - v.allocs, u.allocated - v.allocated, u.moved - v.moved}
}

// resident is the memory of the process that is in RAM, in bytes.
func (p *process) resident(b *testing.B) int { return residentOf(b, p.cmd.Process.Pid) }

// residentOf is the same for any process.
func residentOf(b *testing.B, pid int) int {
	b.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	var size, pages int
	fmt.Sscan(string(statm), &size, &pages)
	return pages * os.Getpagesize()
}
