//go:build !linux

package tun

import (
	"os"

	"serve.zone/relay/hub/node"
)

// A Device is an interface, and a node.Device.
type Device struct{}

// Open returns ErrUnsupported.
func Open(options Options) (*Device, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	return nil, ErrUnsupported
}

// Name returns nothing.
func (d *Device) Name() string { return "" }

// Configure returns ErrUnsupported.
func (d *Device) Configure(node.Settings) error { return ErrUnsupported }

// Read returns os.ErrClosed.
func (d *Device) Read([][]byte, []int, int) (int, error) { return 0, os.ErrClosed }

// Write returns os.ErrClosed.
func (d *Device) Write([][]byte, int) (int, error) { return 0, os.ErrClosed }

// MTU returns ErrUnsupported.
func (d *Device) MTU() (int, error) { return 0, ErrUnsupported }

// BatchSize returns 1.
func (d *Device) BatchSize() int { return 1 }

// Close does nothing.
func (d *Device) Close() error { return nil }
