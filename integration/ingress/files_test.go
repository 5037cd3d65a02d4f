package ingress_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// openFiles are the files that a process has open, also such as were removed or never had
// a name; not its sockets and pipes, nor what the kernel itself tells through a file.
func openFiles(t *testing.T, pid int) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil // that no file appears is held anyway
	}
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(names) == 0 {
		t.Fatalf("what the process has open cannot be seen: %v", err)
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
