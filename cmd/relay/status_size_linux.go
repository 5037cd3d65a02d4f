package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// sizeOf is the size of the terminal that an output is, 0 and 0 for none and for one
// that does not know.
func sizeOf(out io.Writer) (columns, rows int) {
	file, ok := out.(*os.File)
	if !ok {
		return 0, 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}
