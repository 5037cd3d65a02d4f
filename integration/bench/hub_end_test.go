package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"serve.zone/relay/contract"
	"serve.zone/relay/hub/tunnel"
)

// joinWait bounds one dial with its handshake: 256 of them at once take seconds.
const joinWait = 30 * time.Second

// benchKey is the private key of node i; 0 is the bare relay's.
func benchKey(i int) tunnel.PrivateKey {
	var scalar [tunnel.KeySize]byte
	binary.BigEndian.PutUint32(scalar[:], uint32(i+1))
	key, err := tunnel.NewPrivateKey(scalar)
	if err != nil {
		panic(err)
	}
	return key
}

// end is a node's end of a tunnel, as small as can be: of a real node's work only
// what QUIC does is done, on both sides of every ratio.
type end struct {
	conn      *quic.Conn
	socket    net.PacketConn
	transport *quic.Transport
	running   sync.WaitGroup

	// pathSize is what the relay says that a datagram to this end holds.
	pathSize atomic.Int64
	// take gets every packet that comes, on the reader's goroutine; nil loses it.
	take atomic.Pointer[func(packet []byte)]
}

// hubAt is where a hub is, and how it is recognised.
type hubAt struct {
	address   netip.AddrPort
	key       contract.NoiseKey
	authority string
}

func dialEnd(ctx context.Context, to netip.AddrPort) (*end, error) {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	e := &end{socket: socket, transport: tunnel.NodeTransport(socket)}
	e.conn, err = e.transport.Dial(ctx, net.UDPAddrFromAddrPort(to), tunnel.NodeTLS(), tunnel.NodeQUIC())
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// join dials the hub as one of its members, and returns when the hub has taken it.
func (h hubAt) join(key tunnel.PrivateKey) (*end, error) {
	ctx, cancel := context.WithTimeout(context.Background(), joinWait)
	defer cancel()
	e, err := dialEnd(ctx, h.address)
	if err != nil {
		return nil, err
	}
	if err := e.shake(ctx, h, key); err != nil {
		e.close()
		return nil, err
	}
	e.running.Go(e.read)
	return e, nil
}

// shake runs the tunnel's handshake, and reads the hub's messages from then on.
func (e *end) shake(ctx context.Context, h hubAt, key tunnel.PrivateKey) error {
	stream, err := e.conn.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	stream.SetDeadline(time.Now().Add(joinWait))
	initiator := tunnel.Initiator{Static: key, Hub: h.key, AuthorityID: h.authority, Offer: tunnel.Offer{
		Versions: []uint8{tunnel.Version}, InnerMTU: tunnel.MaxInnerMTU, Lanes: []tunnel.Lane{tunnel.LaneDatagram},
	}}
	session, err := initiator.Handshake(stream, tunnel.ExporterOf(e.conn))
	if err != nil {
		return err
	}
	stream.SetDeadline(time.Time{})
	taken := make(chan struct{})
	e.running.Go(func() {
		control, first := session.Control(stream), true
		for {
			m, err := control.Next()
			if err != nil {
				return
			}
			if path, ok := m.(tunnel.Path); ok {
				e.pathSize.Store(int64(path.Size))
			}
			if first {
				close(taken)
				first = false
			}
		}
	})
	select {
	case <-taken:
		return nil
	case <-e.conn.Context().Done():
		return context.Cause(e.conn.Context())
	case <-ctx.Done():
		return errors.New("the hub does not take the member")
	}
}

// register dials the bare relay and tells it an address.
func register(to netip.AddrPort, address [addressBytes]byte) (*end, error) {
	ctx, cancel := context.WithTimeout(context.Background(), joinWait)
	defer cancel()
	e, err := dialEnd(ctx, to)
	if err != nil {
		return nil, err
	}
	if err = e.conn.SendDatagram(address[:]); err == nil {
		_, err = e.conn.ReceiveDatagram(ctx)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	e.running.Go(e.read)
	return e, nil
}

func (e *end) read() {
	for {
		packet, err := e.conn.ReceiveDatagram(context.Background())
		if err != nil {
			return
		}
		if take := e.take.Load(); take != nil {
			(*take)(packet)
		}
	}
}

func (e *end) close() {
	if e.conn != nil {
		e.conn.CloseWithError(0, "")
	}
	e.transport.Close()
	e.socket.Close()
	e.running.Wait()
}

// grow sends packets until datagrams of a size pass in both directions: QUIC finds
// out what the path carries only while something is sent. reached says whether they
// do, from the relay on.
func grow(b *testing.B, packet []byte, from, to *end, reached func() bool) {
	b.Helper()
	binary.BigEndian.PutUint32(packet[numberAt:], growing)
	for limit := time.Now().Add(joinWait); ; time.Sleep(2 * time.Millisecond) {
		large := (*quic.DatagramTooLargeError)(nil)
		small := errors.As(from.conn.SendDatagram(packet), &large)
		from.conn.SendDatagram(packet[:600])
		to.conn.SendDatagram(packet[:600]) // dropped, but acknowledged
		if !small && reached() {
			return
		}
		if time.Now().After(limit) {
			b.Fatalf("a datagram of %d bytes does not pass", len(packet))
		}
	}
}

// ipv4Packet is an IPv4 packet of that many bytes, its payload all zeros.
func ipv4Packet(from, to netip.Addr, size int) []byte {
	p := make([]byte, size)
	p[0], p[8], p[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(p[2:], uint16(size))
	source, destination := from.As4(), to.As4()
	copy(p[destinationAt-addressBytes:], source[:])
	copy(p[destinationAt:], destination[:])
	return p
}
