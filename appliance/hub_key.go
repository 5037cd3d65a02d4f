package appliance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"serve.zone/relay/hub/tunnel"
)

// maximumHubKeyFile bounds the file of the hub's key, which has 44 characters and
// perhaps the end of a line.
const maximumHubKeyFile = 128

// What can be wrong with the file of the hub's key. No error quotes what it holds.
var (
	errHubKeyNoFile = errors.New("is not a regular file")
	errHubKeyMode   = errors.New("can be read or written by others than its owner")
)

// readHubKey reads the hub's private key (contract O3b): the canonical base64 of 32
// bytes, in a regular file that only its owner may read or write. Unlike a bearer's,
// an end of line behind it is accepted, since keys are made by tools that write one.
func readHubKey(name string) (tunnel.PrivateKey, error) {
	key, err := hubKeyOf(name)
	if err != nil {
		return tunnel.PrivateKey{}, fmt.Errorf("hub-key-file: %w", err)
	}
	return key, nil
}

func hubKeyOf(name string) (key tunnel.PrivateKey, err error) {
	// A pipe without a writer must not hold the open.
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return key, err
	}
	defer file.Close()
	about, err := file.Stat()
	switch {
	case err != nil:
		return key, err
	case !about.Mode().IsRegular():
		return key, errHubKeyNoFile
	case about.Mode().Perm()&0o077 != 0:
		return key, errHubKeyMode
	}
	content, err := io.ReadAll(io.LimitReader(file, maximumHubKeyFile))
	defer clear(content)
	if err != nil {
		return key, err
	}
	return tunnel.ParsePrivateKey(strings.TrimRight(string(content), "\r\n"))
}
