package node_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
	"serve.zone/relay/hub/tunnel"
)

var (
	hubKey  = mustKey(0x11)
	nodeKey = mustKey(0x22)

	hubAt    = netip.MustParseAddrPort("192.0.2.1:4433")
	machine  = netip.MustParseAddr("198.51.100.7")
	control  = netip.MustParsePrefix("10.200.0.7/24")
	workload = netip.MustParseAddr("10.1.0.1")

	nodeHubAddress = nodetest.HubAddress
)

func mustKey(b byte) tunnel.PrivateKey {
	key, err := tunnel.NewPrivateKey([tunnel.KeySize]byte(bytes.Repeat([]byte{b}, tunnel.KeySize)))
	if err != nil {
		panic(err)
	}
	return key
}

// packet makes an IPv4 packet to an address, as far as a hub without a policy looks.
func packet(to netip.Addr, size int, mark uint32) []byte {
	p := bytes.Repeat([]byte{0xa5}, size)
	p[0] = 0x45
	binary.BigEndian.PutUint16(p[2:], uint16(size))
	destination := to.As4()
	copy(p[16:], destination[:])
	if size >= 24 {
		binary.BigEndian.PutUint32(p[20:], mark)
	}
	return p
}

// rig is a network with a hub and a node in a bubble.
type rig struct {
	t      *testing.T
	net    *nodetest.Network
	hub    *nodetest.Hub
	device *nodetest.Device
	client *node.Client

	stop context.CancelFunc
	ran  chan error
	mark uint32 // of the packet sent last
	log  *duty.Logger

	mu     sync.Mutex
	states []node.Status
}

func credential() node.Credential {
	return node.Credential{Hub: hubAt, HubKey: hubKey.Public(), AuthorityID: nodetest.AuthorityID, Key: nodeKey}
}

// newRig makes a network and a hub that admits the node; the node does not run yet.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, net: nodetest.NewNetwork(), device: nodetest.NewDevice(64)}
	r.startHub(hubKey)
	t.Cleanup(func() { r.hub.Close() })
	return r
}

func (r *rig) startHub(key tunnel.PrivateKey) {
	r.t.Helper()
	socket, err := r.net.Listen(hubAt)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.hub, err = nodetest.Listen(socket.Conn(), key); err != nil {
		r.t.Fatal(err)
	}
	r.hub.Admit(nodeKey.Public(), nodetest.Member{Control: control, Workload: workload})
}

// run starts the node, and stops it when the test ends.
func (r *rig) run(credential node.Credential) {
	r.t.Helper()
	var err error
	r.client, err = node.New(node.Config{
		Credential: credential, Device: r.device, ListenPacket: r.net.ListenPacket(machine), Log: r.log,
		OnState: func(s node.Status) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.states = append(r.states, s)
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	r.ran = make(chan error, 1)
	go func() { r.ran <- r.client.Run(ctx) }()
	r.t.Cleanup(func() {
		r.stop()
		if r.client.Status().State != node.StateStopped {
			if err := <-r.ran; err != nil {
				r.t.Error(err)
			}
		}
	})
}

// state waits until the node is in a state, and returns how long that took.
func (r *rig) state(want node.State, limit time.Duration) (took time.Duration) {
	r.t.Helper()
	began := time.Now()
	for {
		synctest.Wait()
		s := r.client.Status()
		if s.State == want {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			r.t.Fatalf("state %q after %v, want %q; last %+v", s.State, limit, want, s.Last)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// seen returns the states entered so far.
func (r *rig) seen() []node.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []node.State
	for _, s := range r.states {
		all = append(all, s.State)
	}
	return all
}

// echo sends packets of a size to the hub until one comes back.
func (r *rig) echo(size int, limit time.Duration) {
	r.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); {
		r.mark++
		r.device.ToNode <- packet(nodetest.HubAddress, size, r.mark)
		pause := time.After(200 * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case got := <-r.device.FromNode:
				// An earlier one may be late, but it is one that was sent.
				mark := binary.BigEndian.Uint32(got[20:])
				if mark > r.mark || !bytes.Equal(got, packet(nodetest.HubAddress, len(got), mark)) {
					r.t.Fatalf("a packet came that nobody sent: %x", got)
				}
				if len(got) == size {
					return
				}
			case <-pause:
				waiting = false
			}
		}
	}
	r.t.Fatalf("no packet of %d bytes came back in %v", size, limit)
}

// session returns the next session of the hub.
func (r *rig) session() *nodetest.Session {
	r.t.Helper()
	select {
	case s := <-r.hub.Sessions:
		return s
	case <-time.After(10 * time.Minute): // longer than any wait
		r.t.Fatal("the hub has no session")
		return nil
	}
}
