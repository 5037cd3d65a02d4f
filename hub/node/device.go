package node

import "net/netip"

// Headroom is how many bytes lie before each packet that is read from or written to a
// Device: a Linux TUN puts a header there.
const Headroom = 16

// A Device is where inner packets come from and go to: whole IP packets without any header
// before them. Read and Write may run at once, neither runs twice at once. The devices of
// golang.zx2c4.com/wireguard/tun have these methods.
type Device interface {
	// Read waits for packets and returns how many it read, each into bufs[i][offset:]
	// with its length in sizes[i]. There are BatchSize bufs, each with room for
	// tunnel.MaxInnerMTU bytes. os.ErrClosed says that there will be no more.
	Read(bufs [][]byte, sizes []int, offset int) (n int, err error)

	// Write takes the packets bufs[i][offset:], each in memory of its own that may be
	// written to up to its capacity. It does not wait for anybody to read them.
	Write(bufs [][]byte, offset int) (n int, err error)

	// MTU returns the longest packet that Read returns now.
	MTU() (int, error)

	// BatchSize returns how many packets Read and Write take at most; it never changes.
	BatchSize() int

	// Close ends every Read.
	Close() error
}

// Settings are what the hub says of a node's place in the network.
type Settings struct {
	ControlAddress netip.Prefix // the node's own, with the length of the control prefix
	HubAddress     netip.Addr   // the hub's in the same prefix
	InnerMTU       int          // bytes, one for the whole network
}

// A Configurer is a Device that takes the hub's settings by itself. It is told them before
// the first packet of a tunnel, and again only when they change.
type Configurer interface {
	Configure(s Settings) error
}
