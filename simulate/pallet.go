package simulate

import (
	"context"
	"errors"
	"sync"

	"serve.zone/relay/contract"
)

// ErrNotRegistered is the error of a request of a node that has no session on
// its socket.
var ErrNotRegistered = errors.New("node has no session on a socket")

// Pallet is a simulated node daemon: one process start after another on one
// node. All methods are safe for concurrent use.
type Pallet struct {
	Peer
	cfg  PalletConfig
	line *line

	// registration is held during a registration, so that there is one at a time.
	// It comes before mu.
	registration sync.Mutex

	mu         sync.Mutex
	nonce      string // of this process start
	credential NodeCredential
	bound      *binding // on the socket that stands, nil before an acceptance
	last       *binding // the last one obtained, over all sockets
	inFlight   bool     // a registration is
	early      []early  // pushes that wait for its answer

	projection *Projection
	previous   *contract.DNSLeaseRenewal
	judgements []Judgement
}

// binding is a session that the node obtained, and for what.
type binding struct {
	contract.SessionBinding
	nonce      string
	generation int64
}

// NewPallet returns a Pallet at its process start, which does nothing yet.
func NewPallet(cfg PalletConfig) (*Pallet, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Pallet{cfg: cfg, nonce: cfg.Nonce, credential: cfg.Credential}
	p.begin("pallet", cfg.Wall, cfg.Offer, cfg.RecordLimit)
	p.line = &line{
		peer: &p.Peer, mu: &p.mu, dial: cfg.Dial, url: cfg.URL, tls: cfg.TLS, frame: contract.NodeFrameLimit,
		wait:  backoff{first: cfg.FirstBackoff, last: cfg.LastBackoff, random: cfg.Random},
		serve: p.serve, settle: p.register, until: p.until, again: answered, gone: func() { p.bound = nil },
	}
	return p, nil
}

// Start lets the node dial, register, and do both again whenever its socket
// ends, until Close.
func (p *Pallet) Start() error {
	if !p.spawn(p.line.run) {
		return ErrClosed
	}
	return nil
}

// Close ends the process, its socket and its goroutines, and waits for them.
func (p *Pallet) Close() {
	if p.finish() {
		p.line.hang()
	}
	p.work.Wait()
}

// Nonce returns the nonce of this process start.
func (p *Pallet) Nonce() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nonce
}

// Restart ends this process start and begins the next: a new nonce, a new
// socket. What a node stores durably stays: its credential, its projection and
// the renewal it admitted.
func (p *Pallet) Restart() {
	p.mu.Lock()
	p.nonce, p.last = newNonce(), nil
	p.mu.Unlock()
	p.line.hang()
}

// Reconnect breaks the socket without a word. The node dials again by itself.
func (p *Pallet) Reconnect() { p.line.hang() }

// Binding returns the session that the node holds on its socket, and false when
// it has none.
func (p *Pallet) Binding() (contract.SessionBinding, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bound == nil {
		return contract.SessionBinding{}, false
	}
	return p.bound.SessionBinding, true
}

// Registered reports whether the node holds a session on a socket, and the
// number of that socket.
func (p *Pallet) Registered() (socket int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bound == nil {
		return 0, false
	}
	return p.line.link.number, true
}

// WaitRegistered waits until the node holds a session on a socket newer than
// the given one, and returns its number. Zero waits for any.
func (p *Pallet) WaitRegistered(ctx context.Context, newerThan int) (int, error) {
	var socket int
	err := p.Wait(ctx, "a registered node", func() bool {
		number, ok := p.Registered()
		socket = number
		return ok && number > newerThan
	})
	return socket, err
}

// Dials returns how many sockets the node has opened, failed attempts included.
func (p *Pallet) Dials() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line.dials
}

// StopReading leaves what arrives on the socket unread, as a hanging process
// does. Pongs are not read either, so the carrier ends the socket in the end.
func (p *Pallet) StopReading() { p.line.withConn((*gate).stop) }

// ResumeReading ends StopReading.
func (p *Pallet) ResumeReading() { p.line.withConn((*gate).resume) }
