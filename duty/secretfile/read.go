package secretfile

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// What can be wrong with a file. Any other error of Read is the operating system's.
var (
	ErrNotAFile = errors.New("is not a regular file")
	ErrTooOpen  = errors.New("can be read or written by others than its owner")
	ErrTooLong  = errors.New("is too long")
)

// others are the bits of a mode that let others than the owner do something.
const others = 0o077

// Read returns the content of a regular file of at most limit bytes that only its owner
// may read or write. The caller zeroes it.
func Read(name string, limit int) ([]byte, error) {
	// A pipe without a writer must not hold the open.
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	about, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !about.Mode().IsRegular():
		return nil, ErrNotAFile
	case about.Mode().Perm()&others != 0:
		return nil, ErrTooOpen
	}
	// Memory that grows would leave copies of a secret behind.
	content := make([]byte, limit+1)
	n, err := io.ReadFull(file, content)
	switch {
	case err == nil:
		err = ErrTooLong
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return content[:n], nil
	}
	clear(content)
	return nil, err
}
