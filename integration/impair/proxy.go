package impair

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Config is what a Proxy is made from. Upstream must be set.
type Config struct {
	Upstream netip.AddrPort
	Seed     uint64

	ToUpstream, ToClient Path

	// Listen is where clients send to; any port of 127.0.0.1 if it is not valid.
	Listen netip.AddrPort

	// From is the address that the upstream sees, each client at a port of its own; that
	// of Listen if it is not valid.
	From netip.Addr

	// ListenPacket opens every socket, in the form of package net; nil is the system's.
	ListenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
}

// Proxy carries datagrams between clients and an upstream. Its methods may be called from
// any goroutine.
type Proxy struct {
	upstream     netip.AddrPort
	listenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	inner        net.PacketConn // to the clients
	lines        [directions]*line
	done         chan struct{}
	goroutines   sync.WaitGroup

	mu      sync.RWMutex // guards what follows
	flows   map[netip.AddrPort]*flow
	began   uint64 // flows, ever
	clock   uint64 // of what came from clients, to tell who is silent for longest
	from    netip.Addr
	dark    bool
	closing bool
}

// New opens the socket for clients and carries from now on, until Close.
func New(c Config) (*Proxy, error) {
	for _, path := range []Path{c.ToUpstream, c.ToClient} {
		if err := path.validate(); err != nil {
			return nil, err
		}
	}
	if !c.Upstream.IsValid() {
		return nil, errors.New("impair: no upstream")
	}
	if !c.Listen.IsValid() {
		c.Listen = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	}
	if !c.From.IsValid() {
		c.From = c.Listen.Addr()
	}
	if c.ListenPacket == nil {
		c.ListenPacket = new(net.ListenConfig).ListenPacket
	}
	p := &Proxy{
		upstream: c.Upstream, listenPacket: c.ListenPacket, done: make(chan struct{}),
		flows: map[netip.AddrPort]*flow{}, from: c.From,
	}
	var err error
	if p.inner, err = p.open(c.Listen); err != nil {
		return nil, err
	}
	for d, path := range [directions]Path{c.ToUpstream, c.ToClient} {
		l := newLine(Direction(d), c.Seed, path, func(x parcel) (Reason, bool) { return p.send(Direction(d), x) })
		p.lines[d] = l
		p.goroutines.Go(func() { l.run(p.done) })
	}
	p.goroutines.Go(p.readClients)
	return p, nil
}

// open opens a socket with room for bursts, as far as the system gives it.
func (p *Proxy) open(at netip.AddrPort) (net.PacketConn, error) {
	socket, err := p.listenPacket(context.Background(), "udp", at.String())
	if err != nil {
		return nil, fmt.Errorf("impair: %w", err)
	}
	if s, ok := socket.(interface{ SetReadBuffer(int) error }); ok {
		s.SetReadBuffer(socketBuffer)
	}
	return socket, nil
}

// Addr is where clients send to.
func (p *Proxy) Addr() netip.AddrPort { return addrOf(p.inner.LocalAddr()) }

func addrOf(a net.Addr) netip.AddrPort {
	if udp, ok := a.(*net.UDPAddr); ok {
		return netip.AddrPortFrom(udp.AddrPort().Addr().Unmap(), udp.AddrPort().Port())
	}
	return netip.AddrPort{}
}

// Set changes what a direction does to the datagrams that come from now on.
func (p *Proxy) Set(d Direction, path Path) error {
	if err := path.validate(); err != nil {
		return err
	}
	p.lines[d].set(path)
	return nil
}

// Blackout makes the path dark in both directions, or ends that. What waits when it begins
// is lost when it is due.
func (p *Proxy) Blackout(dark bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dark = dark
}

// Counts returns what became of the datagrams of a direction so far.
func (p *Proxy) Counts(d Direction) Counts { return p.lines[d].read() }

// String says what became of all, for a test that failed.
func (p *Proxy) String() string {
	return fmt.Sprintf("%v: %v; %v: %v", ToUpstream, p.Counts(ToUpstream), ToClient, p.Counts(ToClient))
}

// Close ends everything and waits for it. What waits is dropped.
func (p *Proxy) Close() error {
	p.mu.Lock()
	first := !p.closing
	p.closing = true
	var err error
	if first {
		close(p.done)
		err = p.inner.Close()
		for _, f := range p.flows {
			f.close()
		}
	}
	p.mu.Unlock()
	p.goroutines.Wait()
	return err
}

// send sends what is due.
func (p *Proxy) send(d Direction, x parcel) (Reason, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.dark {
		return Blackout, false
	}
	socket, to := x.flow.outer, p.upstream
	if d == ToClient {
		socket, to = p.inner, x.flow.client
	}
	if _, err := socket.WriteTo(x.bytes, net.UDPAddrFromAddrPort(to)); err != nil {
		return Unsent, false
	}
	return 0, true
}

// readClients reads what clients send.
func (p *Proxy) readClients() {
	p.readAll(p.inner, func(from netip.AddrPort, b []byte) {
		f, dark, err := p.flowOf(from)
		if err != nil {
			p.lines[ToUpstream].refuse(Unsent)
			return
		}
		p.lines[ToUpstream].offer(f, f.sent[ToUpstream].Add(1)-1, b, dark, time.Now())
	})
}

// readUpstream reads what the upstream sends to one place of a flow.
func (p *Proxy) readUpstream(f *flow, socket net.PacketConn) {
	l := p.lines[ToClient]
	p.readAll(socket, func(from netip.AddrPort, b []byte) {
		p.mu.RLock()
		current, dark := f.outer == socket, p.dark
		p.mu.RUnlock()
		switch {
		case from != p.upstream:
			l.refuse(Stranger)
		case !current:
			l.refuse(Forgotten)
		default:
			l.offer(f, f.sent[ToClient].Add(1)-1, b, dark, time.Now())
		}
	})
}

// readAll reads a socket until it is closed.
func (p *Proxy) readAll(socket net.PacketConn, take func(from netip.AddrPort, b []byte)) {
	buf := make([]byte, maxDatagram)
	for failed := 0; failed < maxReadErrors; {
		n, from, err := socket.ReadFrom(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			failed++ // an ICMP answer to what was sent before, say
		default:
			failed = 0
			take(addrOf(from), buf[:n])
		}
	}
}
