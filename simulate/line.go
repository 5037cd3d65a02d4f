package simulate

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// link is one connection of a peer that dials a relay. Its number is fixed; what
// else it holds is guarded by its owner's lock.
type link struct {
	number int
	conn   *gate
	socket *typedsocket.Socket // nil until the upgrade is done
}

// line is the life of a peer that dials a relay: attempt after attempt, with
// waits between them. Its lower fields are guarded by its owner's lock, which mu
// points to.
type line struct {
	peer  *Peer
	mu    *sync.Mutex
	dial  func(ctx context.Context, network, address string) (net.Conn, error) // nil uses a net.Dialer
	url   string
	tls   *tls.Config
	frame int // bounds a message that arrives
	wait  backoff

	// serve takes a request of the relay.
	serve func(*link, *typedsocket.Request)
	// settle sends one registration and takes its answer over.
	settle func(context.Context, *link, *typedsocket.Socket) error
	// until says how long to wait after a failure, which may be nil.
	until func(err error, wait *backoff) time.Duration
	// again says whether a registration that failed is tried again on the same
	// socket.
	again func(err error) bool
	// gone forgets what was bound on the link that stood. The lock is held.
	gone func()

	dials  int    // attempts so far
	link   *link  // the one that stands, nil while none does
	hangUp func() // ends the current attempt, nil between attempts
}

// hang ends the current attempt: a dial, or the socket that stands.
func (l *line) hang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hangUp != nil {
		l.hangUp()
	}
}

// standing returns the socket that stands, nil while none does.
func (l *line) standing() (*link, *typedsocket.Socket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link == nil {
		return nil, nil
	}
	return l.link, l.link.socket
}

// withConn does something to the connection that stands.
func (l *line) withConn(do func(*gate)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link != nil {
		do(l.link.conn)
	}
}

// run is the peer's life, until it has ended.
func (l *line) run() {
	for {
		stood, err := l.attempt()
		l.wait.stood(stood)
		if !l.peer.pause(l.until(err, &l.wait)) {
			return
		}
	}
}

// pause waits, and reports false when the peer has ended.
func (p *Peer) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.done:
		return false
	}
}

// attempt dials, registers and stays until the socket has ended. It returns how
// long the registration stood, and what ended an attempt that had none.
func (l *line) attempt() (time.Duration, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	k := &link{}
	if !l.open(k, cancel) {
		return 0, ErrClosed
	}
	defer l.shut(k)
	socket, err := typedsocket.Connect(ctx, typedsocket.Dial{URL: l.url, TLS: l.tls, Net: l.dialing(k), Config: typedsocket.Config{
		Peer:     "relay",
		Limits:   typedsocket.Limits{Frame: l.frame},
		Handler:  typedsocket.HandlerFunc(func(r *typedsocket.Request) { l.serve(k, r) }),
		Recorder: l.peer.recording(k.number),
	}})
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	k.socket = socket
	l.mu.Unlock()
	defer func() { <-socket.Done() }()
	if err := l.register(ctx, k, socket); err != nil {
		k.conn.Close()
		return 0, err
	}
	since := time.Now()
	select {
	case <-socket.Ending():
		l.shut(k) // the carrier may still say goodbye for a while
	case <-ctx.Done():
		k.conn.Close()
	}
	return time.Since(since), nil
}

// open makes the attempt the current one, unless the peer has ended.
func (l *line) open(k *link, cancel func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.peer.done:
		return false
	default:
	}
	l.dials++
	k.number = l.dials
	l.hangUp = cancel
	return true
}

// shut forgets the attempt and what was bound on it.
func (l *line) shut(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hangUp = nil
	if l.link == k {
		l.link = nil
		l.gone()
	}
	l.peer.watch.notify()
}

// dialing puts a gate before the connection.
func (l *line) dialing(k *link) func(context.Context, string, string) (net.Conn, error) {
	dial := l.dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		k.conn = newGate(conn)
		l.link = k
		return k.conn, nil
	}
}

// register registers until it succeeds, as long as that may be tried again on
// the one socket.
func (l *line) register(ctx context.Context, k *link, socket *typedsocket.Socket) error {
	for {
		err := l.settle(ctx, k, socket)
		if err == nil || errors.Is(err, typedsocket.ErrClosed) || ctx.Err() != nil {
			return err
		}
		if !l.again(err) {
			return err
		}
		timer := time.NewTimer(l.until(err, &l.wait))
		select {
		case <-timer.C:
		case <-socket.Ending():
			timer.Stop()
			return err
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// protocolRefused reports whether one side refused the other's offer, which
// stands until an operator changes a side (contract §4).
func protocolRefused(err error) bool {
	var refusal contract.ProtocolRefusal
	return errors.As(err, &refusal)
}
