package main

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A terminal knows how large it is; nothing else does.
func TestStatus_SizeOf(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	for _, out := range []interface{ Write([]byte) (int, error) }{writer, new(strings.Builder)} {
		if columns, rows := sizeOf(out); columns != 0 || rows != 0 {
			t.Errorf("%T: %d, %d", out, columns, rows)
		}
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	defer terminal.Close()
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 43, Col: 132}); err != nil {
		t.Fatal(err)
	}
	if columns, rows := sizeOf(terminal); columns != 132 || rows != 43 {
		t.Errorf("%d, %d", columns, rows)
	}
}
