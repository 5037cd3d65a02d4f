package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	// memoryStep is how much of a process is looked at in one piece.
	memoryStep = 1 << 20
	// hugeMapping is larger than the heap of a relay in these tests. The race
	// detector's notes are, and slow to look at.
	hugeMapping = 64 << 20
)

// Copies counts how often a text lies in the memory that the relay's process can
// write to. It needs Linux, and skips the test where the memory of another process
// cannot be read.
func (r *Rig) Copies(text string) (count int) {
	r.t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", r.PID()))
	if err != nil {
		r.t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", r.PID()))
	if errors.Is(err, fs.ErrPermission) {
		r.t.Skipf("the memory of another process cannot be read here: %v", err)
	} else if err != nil {
		r.t.Fatal(err)
	}
	defer memory.Close()
	piece := make([]byte, memoryStep+len(text)-1)
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %4s", &from, &to, &mode); n != 3 || mode[:2] != "rw" || to-from >= hugeMapping {
			continue
		}
		for ; from < to; from += memoryStep {
			n, _ := memory.ReadAt(piece[:min(to-from, int64(len(piece)))], from) // what is not there any more is nobody's
			count += bytes.Count(piece[:n], []byte(text))
		}
	}
	return count
}

// OpenFiles returns the files that the relay's process has open, also such as were
// removed or never had a name; not its sockets and pipes, nor what the kernel itself
// tells through a file. It sees them on Linux alone, and returns none elsewhere.
func (r *Rig) OpenFiles() []string {
	r.t.Helper()
	if runtime.GOOS != "linux" {
		return nil // that no file appears is held anyway
	}
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.PID()))
	if err != nil || len(names) == 0 {
		r.t.Fatalf("what the process has open cannot be seen: %v", err)
	}
	var files []string
	for _, name := range names {
		target, err := os.Readlink(name)
		if err != nil {
			continue // closed meanwhile
		}
		none := func(begins string) bool { return strings.HasPrefix(target, begins) }
		if target != os.DevNull && !slices.ContainsFunc([]string{"socket:", "pipe:", "anon_inode:", "/sys/", "/proc/"}, none) {
			files = append(files, target)
		}
	}
	return files
}
