package tun

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
	wireguard "golang.zx2c4.com/wireguard/tun"

	"serve.zone/relay/hub/node"
)

// A Device is an interface, and a node.Device.
type Device struct {
	tun     wireguard.Device
	name    string
	index   int
	options Options
	control netip.Prefix // what Configure set last
	routed  bool         // the routes were set before
}

// Open makes an interface. It is down, and has no addresses, until Configure is called.
func Open(options Options) (*Device, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, named(&fs.PathError{Op: "open", Path: "/dev/net/tun", Err: err})
	}
	request, err := unix.NewIfreq(options.Name)
	if err == nil {
		// With the header of virtio the kernel gives and takes TCP segments in batches.
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, named(os.NewSyscallError("TUNSETIFF", err))
	}
	// The unmonitored one has no goroutines: nobody here listens to what else happens to
	// the interface.
	device, name, err := wireguard.CreateUnmonitoredTUNFromFD(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("take over tun: %w", err)
	}
	d := &Device{tun: device, name: name, options: options}
	if d.index, err = indexOf(name); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// named says which of the two things that containers lack is missing.
func named(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return fmt.Errorf("%w: %w", ErrNoDevice, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return err
}

// Name returns the interface's name.
func (d *Device) Name() string { return d.name }

// Configure gives the interface its place in the network, and sets it up.
func (d *Device) Configure(s node.Settings) error {
	link, err := openNetlink()
	if err != nil {
		return err
	}
	defer link.close()
	if d.control.IsValid() && d.control != s.ControlAddress {
		if err := link.removeAddress(d.index, d.control); err != nil {
			return fmt.Errorf("remove address %v: %w", d.control, err)
		}
	}
	d.control = netip.Prefix{}
	if err := link.setUp(d.index, s.InnerMTU); err != nil {
		return fmt.Errorf("set up %s with mtu %d: %w", d.name, s.InnerMTU, err)
	}
	for _, address := range slices.Concat([]netip.Prefix{s.ControlAddress}, d.options.Addresses) {
		if err := link.addAddress(d.index, address); err != nil {
			return fmt.Errorf("add address %v: %w", address, err)
		}
	}
	d.control = s.ControlAddress
	for _, route := range d.options.Routes {
		err := link.addRoute(d.index, route)
		if err != nil && !(d.routed && errors.Is(err, unix.EEXIST)) {
			return fmt.Errorf("add route to %v: %w", route.To, err)
		}
	}
	d.routed = true
	return nil
}

// Read reads packets.
func (d *Device) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	n, err = d.tun.Read(bufs, sizes, offset)
	if errors.Is(err, wireguard.ErrTooManySegments) {
		return n, nil // the rest of one burst is lost, as a full queue would lose it
	}
	return n, err
}

// Write writes packets. It returns how many of bufs were written.
func (d *Device) Write(bufs [][]byte, offset int) (n int, err error) {
	if _, err := d.tun.Write(bufs, offset); err != nil {
		return 0, err
	}
	return len(bufs), nil
}

// MTU returns the interface's MTU.
func (d *Device) MTU() (int, error) { return mtuOf(d.name) }

// BatchSize returns how many packets are read or written at once.
func (d *Device) BatchSize() int { return d.tun.BatchSize() }

// Close removes the interface.
func (d *Device) Close() error { return d.tun.Close() }

func indexOf(name string) (int, error) {
	request, err := ask(name, unix.SIOCGIFINDEX)
	if err != nil {
		return 0, fmt.Errorf("index of %s: %w", name, err)
	}
	return int(request.Uint32()), nil
}

func mtuOf(name string) (int, error) {
	request, err := ask(name, unix.SIOCGIFMTU)
	if err != nil {
		return 0, fmt.Errorf("mtu of %s: %w", name, err)
	}
	return int(request.Uint32()), nil
}

func ask(name string, what uint) (*unix.Ifreq, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	return request, unix.IoctlIfreq(fd, what, request)
}
