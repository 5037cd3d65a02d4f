package origincert

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maximumFile bounds a file, in bytes. A chain of four RSA certificates has
// about 8 KiB.
const maximumFile = 256 << 10

// File is what was read of a file.
type File struct {
	Content []byte
	Mode    fs.FileMode // of the very file the content is from
}

// ReadFile reads a regular file of at most 256 KiB. A name that leads to a pipe
// or a device is refused without waiting for it.
func ReadFile(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	fault := func(why error) (File, error) {
		return File{}, &fs.PathError{Op: "read", Path: name, Err: why}
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return File{}, err
	case !info.Mode().IsRegular():
		return fault(errIrregular)
	case info.Size() > maximumFile:
		return fault(errTooLarge)
	}
	// Read into memory of the right size: memory that grows leaves copies behind,
	// of a key too.
	content := make([]byte, info.Size()+1)
	n, err := io.ReadFull(f, content)
	switch {
	case err == nil:
		clear(content)
		return fault(errGrown)
	case err != io.EOF && err != io.ErrUnexpectedEOF:
		clear(content)
		return File{}, err
	}
	return File{Content: content[:n], Mode: info.Mode()}, nil
}

// Why a file is not read.
var (
	errIrregular = errors.New("not a regular file")
	errTooLarge  = fmt.Errorf("larger than %d bytes", maximumFile)
	errGrown     = errors.New("it grew while it was read")
)
