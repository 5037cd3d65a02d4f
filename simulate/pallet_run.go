package simulate

import (
	"context"
	"errors"
	"net"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// run is the node's life: attempt after attempt, with waits between them.
func (p *Pallet) run() {
	wait := &backoff{first: p.cfg.FirstBackoff, last: p.cfg.LastBackoff, random: p.cfg.Random}
	for {
		stood, err := p.attempt(wait)
		wait.stood(stood)
		if !p.pause(p.until(wait, err)) {
			return
		}
	}
}

// until is how long the node waits after a failure. A protocol refusal stands
// until an operator changes a side (contract §4).
func (p *Pallet) until(wait *backoff, err error) time.Duration {
	var refusal contract.ProtocolRefusal
	if errors.As(err, &refusal) {
		return contract.RefusedOfferRetryInterval
	}
	return wait.next()
}

func (p *Pallet) pause(d time.Duration) bool {
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
// long the session stood, and what ended an attempt that had none.
func (p *Pallet) attempt(wait *backoff) (time.Duration, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	link := &palletSocket{}
	if !p.open(link, cancel) {
		return 0, ErrClosed
	}
	defer p.shut(link)
	socket, err := typedsocket.Connect(ctx, typedsocket.Dial{URL: p.cfg.URL, TLS: p.cfg.TLS, Net: p.dialing(link), Config: typedsocket.Config{
		Peer:     "relay",
		Limits:   typedsocket.Limits{Frame: contract.NodeFrameLimit},
		Handler:  typedsocket.HandlerFunc(func(r *typedsocket.Request) { p.serve(link, r) }),
		Recorder: p.recording(link.number),
	}})
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	link.socket = socket
	p.mu.Unlock()
	defer func() { <-socket.Done() }()
	if err := p.settle(ctx, link, socket, wait); err != nil {
		link.conn.Close()
		return 0, err
	}
	since := time.Now()
	select {
	case <-socket.Ending():
		p.shut(link) // the carrier may still say goodbye for a while
	case <-ctx.Done():
		link.conn.Close()
	}
	return time.Since(since), nil
}

// open makes the attempt the current one, unless the node has ended.
func (p *Pallet) open(link *palletSocket, cancel func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		return false
	default:
	}
	p.dials++
	link.number = p.dials
	p.hangUp = cancel
	return true
}

// shut forgets the attempt and what was bound on it.
func (p *Pallet) shut(link *palletSocket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangUp = nil
	if p.link == link {
		p.link, p.bound = nil, nil
	}
	p.watch.notify()
}

// dialing puts a gate before the connection.
func (p *Pallet) dialing(link *palletSocket) func(context.Context, string, string) (net.Conn, error) {
	dial := p.cfg.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		link.conn = newGate(conn)
		p.link = link
		return link.conn, nil
	}
}

// settle registers until it succeeds, on the one socket: a relay that is not
// ready yet keeps it open. A protocol refusal and the socket's end are final.
func (p *Pallet) settle(ctx context.Context, link *palletSocket, socket *typedsocket.Socket, wait *backoff) error {
	for {
		err := p.register(ctx, link, socket)
		var refusal contract.ProtocolRefusal
		if err == nil || errors.As(err, &refusal) || errors.Is(err, typedsocket.ErrClosed) || ctx.Err() != nil {
			return err
		}
		var remote *typedsocket.RemoteError
		if !errors.As(err, &remote) {
			return err // no answer, or one that does not bind: nothing is known of this socket
		}
		timer := time.NewTimer(wait.next())
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
