package appliance

import (
	"fmt"
	"strings"

	"serve.zone/relay/duty/secretfile"
	"serve.zone/relay/hub/tunnel"
)

// maximumHubKeyFile bounds the file of the hub's key, which has 44 characters and
// perhaps the end of a line.
const maximumHubKeyFile = 128

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

func hubKeyOf(name string) (tunnel.PrivateKey, error) {
	content, err := secretfile.Read(name, maximumHubKeyFile)
	if err != nil {
		return tunnel.PrivateKey{}, err
	}
	defer clear(content)
	return tunnel.ParsePrivateKey(strings.TrimRight(string(content), "\r\n"))
}
