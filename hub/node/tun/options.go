package tun

import (
	"errors"
	"fmt"
	"net/netip"
)

// MaxRoutes bounds the addresses and the routes of an interface: the workload prefixes of a
// network with 256 members of 128 are 32,768, and nobody routes them one by one.
const MaxRoutes = 1024

// maxName is the longest name of an interface, IFNAMSIZ less its zero byte.
const maxName = 15

// A Route sends a prefix into the tunnel.
type Route struct {
	To     netip.Prefix
	Source netip.Addr // of packets that have none yet; not valid for the kernel's choice
}

// Options say what interface to make.
type Options struct {
	Name      string         // with at most 15 bytes; a %d in it is the first free number
	Addresses []netip.Prefix // besides the control address, such as the node's workload addresses
	Routes    []Route        // besides that of the control prefix
}

// Errors of Open and Configure.
var (
	ErrOptions     = errors.New("options of the interface are not valid")
	ErrNoDevice    = errors.New("there is no /dev/net/tun")
	ErrForbidden   = errors.New("no right to make a network interface: CAP_NET_ADMIN is missing, or the device is not allowed in this container")
	ErrUnsupported = errors.New("a tun interface is not supported on this system")
)

func (o Options) validate() error {
	if o.Name == "" || len(o.Name) > maxName {
		return fmt.Errorf("%w: a name has 1 to %d bytes", ErrOptions, maxName)
	}
	if len(o.Addresses) > MaxRoutes || len(o.Routes) > MaxRoutes {
		return fmt.Errorf("%w: more than %d addresses or routes", ErrOptions, MaxRoutes)
	}
	for _, a := range o.Addresses {
		if !a.IsValid() || !a.Addr().Is4() {
			return fmt.Errorf("%w: address %v is not ipv4", ErrOptions, a)
		}
	}
	for _, r := range o.Routes {
		switch {
		case !r.To.IsValid() || !r.To.Addr().Is4() || r.To != r.To.Masked():
			return fmt.Errorf("%w: route %v is no ipv4 prefix", ErrOptions, r.To)
		case r.Source.IsValid() && !r.Source.Is4():
			return fmt.Errorf("%w: source %v is not ipv4", ErrOptions, r.Source)
		}
	}
	return nil
}
