package credential

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"serve.zone/relay/duty/secretfile"
	"serve.zone/relay/hub/node"
)

const (
	// maxCredential bounds a credential: the longest has an authority id of 128 bytes
	// and two keys of 44.
	maxCredential = 4 << 10
	// maxKey bounds a key file, which has 44 characters and an end of line.
	maxKey = 128
	// ownerOnly is the mode of a key file that is made.
	ownerOnly fs.FileMode = 0o600
)

// Read reads a credential. An error is an *Error.
func Read(name string) (node.Credential, error) {
	content, err := read(name, maxCredential)
	if err != nil {
		return node.Credential{}, err
	}
	defer clear(content)
	return parse(content, filepath.Dir(name))
}

// ReadKey reads a private key. An error is an *Error.
func ReadKey(name string) (node.PrivateKey, error) {
	content, err := read(name, maxKey)
	if err != nil {
		return node.PrivateKey{}, err
	}
	defer clear(content)
	key, err := node.ParsePrivateKey(strings.TrimRight(string(content), "\r\n"))
	if err != nil {
		return node.PrivateKey{}, &Error{Name: NoKey}
	}
	return key, nil
}

// Create writes a private key to a file that must not exist, and returns when file and
// name are on the disk. An error is an *Error; no file is left then that was not there
// before.
func Create(name string, key node.PrivateKey) error { return create(name, key, syncFolder) }

// create is Create, with what puts the names of a folder on the disk.
func create(name string, key node.PrivateKey, sync func(folder string) error) error {
	// O_EXCL follows no link either.
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnly)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &Error{Name: Exists}
	case err != nil:
		return &Error{Name: NotMade, Cause: err}
	}
	_, err = io.WriteString(file, key.Secret()+"\n")
	// What is not on the disk may be gone with the machine, and the key is told to
	// others as soon as it is here.
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = sync(filepath.Dir(name)) // the name is the folder's, and not on the disk by the file's Sync
	}
	if err != nil {
		os.Remove(name)
		return &Error{Name: NotMade, Cause: err}
	}
	return nil
}

// syncFolder puts the names that a folder has on the disk.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("sync the folder: %w", err)
	}
	err = folder.Sync()
	// Some file systems, mostly those of a network, sync no folder by itself: there is
	// nothing more to do on them.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if err = errors.Join(err, folder.Close()); err != nil {
		return fmt.Errorf("sync the folder: %w", err)
	}
	return nil
}

// read reads a regular file that is its owner's alone.
func read(name string, limit int) ([]byte, error) {
	content, err := secretfile.Read(name, limit)
	switch {
	case err == nil:
		return content, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Name: Missing}
	case errors.Is(err, secretfile.ErrNotAFile):
		return nil, &Error{Name: NotAFile}
	case errors.Is(err, secretfile.ErrTooOpen):
		return nil, &Error{Name: TooOpen}
	case errors.Is(err, secretfile.ErrTooLong):
		return nil, &Error{Name: TooLong}
	}
	return nil, &Error{Name: Unreadable, Cause: err}
}
