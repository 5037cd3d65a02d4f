package config_test

import (
	"fmt"
	"io"
	"os"

	"serve.zone/relay/config"
)

// A program gives Load what it was started with. Every violation comes at once,
// by name and without a value.
func ExampleLoad() {
	_, _, err := config.Load(config.Sources{
		Flags:   map[string]string{"listen": "127.0.0.1:8443", "node-id": "node-a"},
		Environ: []string{"CLOUDLY_URL=http://cloudly.example", "RELAY_CREDENTIAL_FILE=/etc/relay/credential", "RELAY_TLS_SOURCE=cloudly"},
		Open:    func(name string) (io.ReadCloser, error) { return os.Open(name) },
	})
	fmt.Println(err)
	// Output:
	// invalid configuration: cloudly-url (from CLOUDLY_URL): is http to a host that is no loopback address: want https; listen (from --listen): is a loopback address
}
