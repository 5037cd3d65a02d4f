package nodetest

import (
	"os"
	"sync"

	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/tunnel"
)

// A Device is a node.Device whose packets a test gives and takes.
type Device struct {
	ToNode   chan []byte // what the node reads, one a batch
	FromNode chan []byte // what the node wrote; if it is full, the node's packet is dropped

	once   sync.Once
	closed chan struct{}

	mu       sync.Mutex
	settings []node.Settings
	refusal  error
}

// NewDevice returns a device with room for that many packets in each direction.
func NewDevice(room int) *Device {
	return &Device{ToNode: make(chan []byte, room), FromNode: make(chan []byte, room), closed: make(chan struct{})}
}

// Refuse makes Configure return an error, or nil again.
func (d *Device) Refuse(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refusal = err
}

// Settings returns what Configure was told, in order.
func (d *Device) Settings() []node.Settings {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]node.Settings(nil), d.settings...)
}

// Configure takes note of the settings.
func (d *Device) Configure(s node.Settings) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusal != nil {
		return d.refusal
	}
	d.settings = append(d.settings, s)
	return nil
}

// Read reads one packet that the test gave.
func (d *Device) Read(bufs [][]byte, sizes []int, offset int) (int, error) {
	select {
	case <-d.closed:
		return 0, os.ErrClosed
	case packet := <-d.ToNode:
		sizes[0] = copy(bufs[0][offset:], packet)
		return 1, nil
	}
}

// Write gives packets to the test.
func (d *Device) Write(bufs [][]byte, offset int) (int, error) {
	for _, b := range bufs {
		select {
		case d.FromNode <- append([]byte(nil), b[offset:]...):
		default:
		}
	}
	return len(bufs), nil
}

// MTU returns the longest inner MTU.
func (d *Device) MTU() (int, error) { return tunnel.MaxInnerMTU, nil }

// BatchSize returns a small one.
func (d *Device) BatchSize() int { return 4 }

// Close ends every read.
func (d *Device) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

// Closed is closed when the device is.
func (d *Device) Closed() <-chan struct{} { return d.closed }
