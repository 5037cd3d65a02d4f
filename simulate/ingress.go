package simulate

import (
	"context"
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// Ingress is a simulated cluster ingress on one node: it registers at a relay,
// keeps the route table, serves it (Serve, ServePort) and counts what passes.
// All methods are safe for concurrent use.
type Ingress struct {
	Peer
	cfg     IngressConfig
	line    *line
	wake    chan struct{} // room for one: a pull may be due
	traffic traffic
	web     web

	// asking is held during a registration or a pull, so that there is one at a
	// time. It comes before mu.
	asking sync.Mutex

	mu        sync.Mutex
	bearer    string
	bound     *link     // the socket on which the ingress is registered, nil while none is
	accepted  int64     // revision in the last acceptance, 0 for null
	notBefore time.Time // when a refused registration may be sent again
	inFlight  bool      // a registration is
	early     []early   // requests that wait for its answer
	seen      seen      // what the relay said on the socket that stands
	due       bool      // the table is to be pulled
	cursors   cursorKey

	table      *servedTable // nil while none is held
	judgements []TableJudgement
}

// NewIngress returns an ingress that does nothing yet.
func NewIngress(cfg IngressConfig) (*Ingress, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	i := &Ingress{cfg: cfg, bearer: cfg.Bearer, wake: make(chan struct{}, 1), cursors: newCursorKey()}
	i.begin("ingress", cfg.Wall, cfg.Offer, cfg.RecordLimit)
	for _, b := range cfg.Traffic {
		if err := i.AddTraffic(b); err != nil {
			return nil, err
		}
	}
	i.line = &line{
		peer: &i.Peer, mu: &i.mu, dial: cfg.Dial, url: cfg.URL, tls: cfg.TLS, frame: contract.CloudlyFrameLimit,
		wait:  backoff{first: cfg.FirstBackoff, last: cfg.LastBackoff, random: cfg.Random},
		serve: i.serve, settle: i.register, until: i.until, again: i.again, gone: i.unbind,
	}
	i.web.begin(i)
	return i, nil
}

// Start lets the ingress dial, register, pull the table whenever it is told of a
// newer one, and do all that again whenever its socket ends, until Close.
func (i *Ingress) Start() error {
	if !i.spawn(i.line.run) || !i.spawn(i.keepPulling) {
		return ErrClosed
	}
	return nil
}

// Close ends the ingress, its sockets, listeners, connections and goroutines, and
// waits for them.
func (i *Ingress) Close() {
	if i.finish() {
		i.line.hang()
		i.web.close()
	}
	i.work.Wait()
}

// unbind forgets what held for the socket alone. What the ingress serves stays
// (contract §11.3). The lock is held.
func (i *Ingress) unbind() { i.bound, i.seen, i.due = nil, seen{}, false }

// Restart ends this process start and begins the next: the table, which is never
// on disk, is gone, and the socket ends. What was counted stays.
func (i *Ingress) Restart() {
	i.mu.Lock()
	i.table, i.accepted, i.notBefore = nil, 0, time.Time{}
	i.mu.Unlock()
	i.line.hang()
}

// Reconnect breaks the socket without a word. The ingress dials again by itself,
// and serves what it holds meanwhile.
func (i *Ingress) Reconnect() { i.line.hang() }

// SetBearer is the bearer of the next registrations.
func (i *Ingress) SetBearer(bearer string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bearer = bearer
}

// Registered reports whether the ingress is registered on a socket, and the
// number of that socket.
func (i *Ingress) Registered() (socket int, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bound == nil {
		return 0, false
	}
	return i.bound.number, true
}

// WaitRegistered waits until the ingress is registered on a socket newer than the
// given one, and returns its number. Zero waits for any.
func (i *Ingress) WaitRegistered(ctx context.Context, newerThan int) (int, error) {
	var socket int
	err := i.Wait(ctx, "a registered ingress", func() bool {
		number, ok := i.Registered()
		socket = number
		return ok && number > newerThan
	})
	return socket, err
}

// AcceptedRevision returns the revision that the last acceptance stated, 0 for
// null and before the first one.
func (i *Ingress) AcceptedRevision() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.accepted
}

// Dials returns how many sockets the ingress has opened, failed attempts included.
func (i *Ingress) Dials() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.line.dials
}

// StopReading leaves what arrives on the socket unread, as a hanging process
// does. Pongs are not read either, so the carrier ends the socket in the end.
func (i *Ingress) StopReading() { i.line.withConn((*gate).stop) }

// ResumeReading ends StopReading.
func (i *Ingress) ResumeReading() { i.line.withConn((*gate).resume) }

// SendBody sends any request on the socket to the relay, registered or not, as it
// is spelled, and returns the bytes of the answer. A refusal is a
// *typedsocket.RemoteError; see Named.
func (i *Ingress) SendBody(ctx context.Context, method string, body []byte) (contract.Raw, error) {
	_, socket := i.line.standing()
	if socket == nil {
		return nil, ErrNotRegistered
	}
	return call(ctx, socket, method, body)
}

// standing returns the socket on which the ingress is registered.
func (i *Ingress) standing() (*link, *typedsocket.Socket, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bound == nil {
		return nil, nil, ErrNotRegistered
	}
	return i.bound, i.bound.socket, nil
}
