package hub

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing/synctest"
	"time"

	realnode "serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
)

// dialler is a member that the client of package node keeps connected: what runs on nodes.
type dialler struct {
	r      *rig
	i      int
	at     string // the address of its machine
	device *nodetest.Device
	client *realnode.Client
	stop   func() // stops it; the end of the test does as well

	mark uint32          // of the packet that it sent last
	got  map[uint64]bool // packets that came, by who sent them and their marks
}

// runs starts the client of node i, and stops it when the test ends.
func (r *rig) runs(i int) *dialler { r.t.Helper(); return r.runsAt(i, r.machine(i).String()) }

// runsAt is runs on another machine.
func (r *rig) runsAt(i int, machine string) *dialler {
	r.t.Helper()
	d := &dialler{r: r, i: i, at: machine, device: nodetest.NewDevice(1024), got: map[uint64]bool{}}
	var err error
	d.client, err = realnode.New(realnode.Config{
		Credential: realnode.Credential{Hub: r.Addr(), HubKey: r.key.Public(), AuthorityID: "authority:1", Key: keyOf(i)},
		Device:     d.device,
		ListenPacket: func(ctx context.Context, network, _ string) (net.PacketConn, error) {
			return r.listen(ctx, network, machine+":0")
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- d.client.Run(ctx) }()
	d.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ran; err != nil {
			r.t.Errorf("node %d: %v", i, err)
		}
	})
	r.t.Cleanup(d.stop)
	return d
}

// machine is the address of node i's machine.
func (r *rig) machine(i int) netip.Addr { return netip.MustParseAddrPort(r.from(i)).Addr() }

// socket is the one that a node dials with now.
func (d *dialler) socket() netip.AddrPort {
	d.r.t.Helper()
	d.r.net.mu.Lock()
	defer d.r.net.mu.Unlock()
	for at := range d.r.net.sockets {
		if at.Addr() == d.r.machine(d.i) {
			return at
		}
	}
	d.r.t.Fatalf("node %d has no socket", d.i)
	return netip.AddrPort{}
}

// until waits until something holds.
func (r *rig) until(what string, limit time.Duration, holds func() bool) {
	r.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		synctest.Wait()
		if holds() {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("not in %v: %s; members %+v", limit, what, r.status().Members)
		}
	}
}

// comesUp waits until both ends have the tunnel.
func (d *dialler) comesUp(limit time.Duration) {
	d.r.t.Helper()
	d.r.until(fmt.Sprintf("node %d is up at both ends", d.i), limit, func() bool {
		return d.client.Status().State == realnode.StateUp && d.r.member(d.i).Session != nil
	})
}

// packet is the packet of node i with a mark, to node j.
func packetTo(i, j, size int, mark uint32) []byte {
	p := packetOf(ip(i), ip(j), size, int(mark))
	for at := 24; at < size; at++ {
		p[at] = byte(int(mark) + at)
	}
	return p
}

// send sends a packet of a size to another node.
func (d *dialler) send(to *dialler, size int) {
	d.mark++
	d.device.ToNode <- packetTo(d.i, to.i, size, d.mark)
}

// take takes what came, and returns the sizes. Everything that comes was sent, and comes
// once.
func (d *dialler) take() (sizes []int) {
	d.r.t.Helper()
	for {
		select {
		case p := <-d.device.FromNode:
			from, mark := int(p[13]), binary.BigEndian.Uint32(p[20:])
			if !bytes.Equal(p, packetTo(from, d.i, len(p), mark)) {
				d.r.t.Fatalf("node %d got what nobody sent: %x", d.i, p)
			}
			key := uint64(from)<<32 | uint64(mark)
			if d.got[key] {
				d.r.t.Errorf("node %d got packet %d of node %d twice", d.i, mark, from)
			}
			d.got[key] = true
			sizes = append(sizes, len(p))
		default:
			return sizes
		}
	}
}

// reaches sends packets of a size until one arrives.
func (d *dialler) reaches(to *dialler, size int, limit time.Duration) {
	d.r.t.Helper()
	d.r.until(fmt.Sprintf("%d bytes from node %d to node %d", size, d.i, to.i), limit, func() bool {
		d.send(to, size)
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		for _, came := range to.take() {
			if came == size {
				return true
			}
		}
		return false
	})
}
