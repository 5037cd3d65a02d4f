package impair

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
)

// flow is one client, and where the upstream sees it.
type flow struct {
	number uint64 // among all, as they came
	client netip.AddrPort
	sent   [directions]atomic.Uint64 // datagrams that were judged

	// Guarded by Proxy.mu.
	used  uint64         // when something came from it last
	outer net.PacketConn // to the upstream
	old   net.PacketConn // of before the last Rebind: read so that what is sent there vanishes
}

// close ends its sockets. The caller holds Proxy.mu.
func (f *flow) close() {
	f.outer.Close()
	if f.old != nil {
		f.old.Close()
	}
}

// errClosed is a Proxy that is closed.
var errClosed = errors.New("impair: closed")

// flowOf returns the flow of a client from which something came, and whether it is dark.
func (p *Proxy) flowOf(client netip.AddrPort) (f *flow, dark bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock++
	if f = p.flows[client]; f == nil {
		if f, err = p.begin(client); err != nil {
			return nil, false, err
		}
	}
	f.used = p.clock
	return f, p.dark, nil
}

// begin begins a flow. The caller holds mu.
func (p *Proxy) begin(client netip.AddrPort) (*flow, error) {
	if p.closing {
		return nil, errClosed
	}
	socket, err := p.open(netip.AddrPortFrom(p.from, 0))
	if err != nil {
		return nil, err
	}
	if len(p.flows) >= maxFlows {
		p.evict()
	}
	f := &flow{number: p.began, client: client, outer: socket}
	p.began++
	p.flows[client] = f
	p.goroutines.Go(func() { p.readUpstream(f, socket) })
	return f, nil
}

// evict ends the flow that was silent for longest. The caller holds mu.
func (p *Proxy) evict() {
	var oldest *flow
	for _, f := range p.flows {
		if oldest == nil || f.used < oldest.used {
			oldest = f
		}
	}
	oldest.close()
	delete(p.flows, oldest.client)
}

// Rebind gives every flow another port, at an address that the upstream sees from now on;
// the same one if it is not valid. On an error nothing has changed.
func (p *Proxy) Rebind(from netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return errClosed
	}
	if !from.IsValid() {
		from = p.from
	}
	sockets := make(map[*flow]net.PacketConn, len(p.flows))
	for _, f := range p.flows {
		socket, err := p.open(netip.AddrPortFrom(from, 0))
		if err != nil {
			for _, s := range sockets {
				s.Close()
			}
			return fmt.Errorf("rebind to %v: %w", from, err)
		}
		sockets[f] = socket
	}
	p.from = from
	for f, socket := range sockets {
		if f.old != nil {
			f.old.Close()
		}
		f.old, f.outer = f.outer, socket
		p.goroutines.Go(func() { p.readUpstream(f, socket) })
	}
	return nil
}

// Places returns where the upstream sees the clients, by client.
func (p *Proxy) Places() map[netip.AddrPort]netip.AddrPort {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make(map[netip.AddrPort]netip.AddrPort, len(p.flows))
	for client, f := range p.flows {
		all[client] = addrOf(f.outer.LocalAddr())
	}
	return all
}
