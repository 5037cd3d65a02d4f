package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// carryChunk is how many bytes of one direction may be under way in the proxy.
	carryChunk = 32 << 10
	// reachWait bounds how long the proxy dials its target.
	reachWait = 10 * time.Second
)

// Upstream is a TCP proxy between the relay and Cloudly, for outages on real
// sockets. It carries bytes and knows nothing of them. All methods are safe for
// concurrent use.
type Upstream struct {
	target string
	work   sync.WaitGroup

	mu       sync.Mutex // guards what follows
	address  string
	passing  chan struct{}
	listener net.Listener // nil while connections are refused
	pairs    map[*pair]struct{}
	accepted int
	closed   bool
}

// NewUpstream listens on an address and carries what comes to the target.
func NewUpstream(address, target string) (*Upstream, error) {
	u := &Upstream{address: address, target: target, passing: make(chan struct{}), pairs: map[*pair]struct{}{}}
	if err := u.Resume(); err != nil {
		return nil, err
	}
	return u, nil
}

// Address returns where the proxy listens, also while it refuses.
func (u *Upstream) Address() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.address
}

// Cut breaks every connection that stands, at both ends, without a word. New ones
// are treated as before.
func (u *Upstream) Cut() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for p := range u.pairs {
		p.sever()
	}
}

// Refuse refuses new connections as a host does on which nothing listens. Those
// that stand go on.
func (u *Upstream) Refuse() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.listener != nil {
		u.listener.Close()
		u.listener = nil
	}
}

// Stall lets nothing pass any more, on connections that stand and on new ones,
// and ends none: the network swallows packets. Per connection and direction at
// most one chunk that is being written may still arrive.
func (u *Upstream) Stall() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.isPassing() {
		u.passing = make(chan struct{})
	}
}

// Outage is Refuse and Cut.
func (u *Upstream) Outage() {
	u.Refuse()
	u.Cut()
}

// Resume ends Stall, whose bytes arrive now, and Refuse.
func (u *Upstream) Resume() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return errors.New("rig: the proxy is closed")
	}
	if u.listener == nil {
		listener, err := listen(u.address)
		if err != nil {
			return fmt.Errorf("rig: proxy: %w", err)
		}
		u.address = listener.Addr().String() // port 0 was asked for
		u.listener = listener
		u.work.Go(func() { u.accept(listener) })
	}
	if !u.isPassing() {
		close(u.passing)
	}
	return nil
}

// Accepted returns how many connections were accepted so far.
func (u *Upstream) Accepted() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.accepted
}

// Standing returns how many connections stand.
func (u *Upstream) Standing() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.pairs)
}

// Close ends everything and waits for it.
func (u *Upstream) Close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.Outage()
	u.work.Wait()
}

func (u *Upstream) isPassing() bool {
	select {
	case <-u.passing:
		return true
	default:
		return false
	}
}

func (u *Upstream) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // Refuse or Close
		}
		ctx, end := context.WithCancel(context.Background())
		p := &pair{u: u, end: end, gone: ctx.Done(), client: client.(*net.TCPConn)}
		u.mu.Lock()
		if u.listener != listener { // refused meanwhile
			p.sever()
		} else {
			u.accepted++
			u.pairs[p] = struct{}{}
			u.work.Go(func() { p.carry(ctx) })
		}
		u.mu.Unlock()
	}
}

// pass waits until bytes may pass, and reports false when the connection is gone
// before.
func (u *Upstream) pass(gone <-chan struct{}) bool {
	u.mu.Lock()
	passing := u.passing
	u.mu.Unlock()
	select {
	case <-passing:
	case <-gone:
		return false
	}
	select {
	case <-gone:
		return false
	default:
		return true
	}
}

// pair is one connection and its continuation to the target.
type pair struct {
	u      *Upstream
	end    context.CancelFunc
	gone   <-chan struct{}
	client *net.TCPConn
	target *net.TCPConn // guarded by Upstream.mu; nil until it is dialled
}

// sever breaks both ends by a reset, which closing with unsent data discarded
// gives. The proxy's lock is held, or nobody else knows the pair.
func (p *pair) sever() {
	p.end()
	for _, conn := range []*net.TCPConn{p.client, p.target} {
		if conn != nil {
			conn.SetLinger(0)
			conn.Close()
		}
	}
}

func (p *pair) severNow() {
	p.u.mu.Lock()
	defer p.u.mu.Unlock()
	p.sever()
}

func (p *pair) carry(ctx context.Context) {
	defer func() {
		p.u.mu.Lock()
		defer p.u.mu.Unlock()
		delete(p.u.pairs, p)
		p.end()
		p.client.Close()
		if p.target != nil {
			p.target.Close()
		}
	}()
	if !p.u.pass(p.gone) || !p.reach(ctx) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(p.target, p.client) })
	both.Go(func() { p.pump(p.client, p.target) })
	both.Wait()
}

// reach dials the target. When that fails, the client's connection is reset.
func (p *pair) reach(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: reachWait}
	conn, err := dialer.DialContext(ctx, "tcp4", p.u.target)
	p.u.mu.Lock()
	defer p.u.mu.Unlock()
	if err != nil {
		p.sever()
		return false
	}
	p.target = conn.(*net.TCPConn)
	select {
	case <-p.gone:
		p.sever()
		return false
	default:
		return true
	}
}

// pump carries one direction to its end.
func (p *pair) pump(to, from *net.TCPConn) {
	chunk := make([]byte, carryChunk)
	for {
		n, err := from.Read(chunk)
		if !p.u.pass(p.gone) {
			return
		}
		if n > 0 {
			if _, failed := to.Write(chunk[:n]); failed != nil {
				p.severNow()
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			to.CloseWrite()
			return
		case err != nil:
			p.severNow()
			return
		}
	}
}
