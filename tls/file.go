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
	info, err := f.Stat()
	switch {
	case err != nil:
		return File{}, err
	case !info.Mode().IsRegular():
		return File{}, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	}
	content, err := io.ReadAll(io.LimitReader(f, maximumFile+1))
	switch {
	case err != nil:
		return File{}, err
	case len(content) > maximumFile:
		return File{}, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("larger than %d bytes", maximumFile)}
	}
	return File{Content: content, Mode: info.Mode()}, nil
}
