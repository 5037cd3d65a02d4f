package ingress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// Name is the name of this duty.
const Name = "ingress"

// The roles of a Conn whose requests are served here.
const (
	RoleUnbound = "unbound"
	RoleIngress = "ingress"
)

// Conn is a socket of the node listener, as the listener knows it. It is the
// same value for every request of one socket.
type Conn interface {
	Socket() *typedsocket.Socket
	// Role returns what the socket is; see RoleUnbound and RoleIngress.
	Role() string
	// BindIngress makes an unbound socket that of the ingress of a node. It fails,
	// and changes nothing, when the socket has another role or node, or has ended.
	// It must not block nor call back: it is called under a lock of this package.
	BindIngress(nodeID string) error
	// OnClose adds a function that is called once when the socket begins to end,
	// or at once, on another goroutine, when that is over.
	OnClose(func())
}

// Config is what an Ingress is made from. Offer and Call must be set.
type Config struct {
	// Offer is the relay's own for ingresses (contract.ClusterIngressSession).
	Offer contract.Offer
	// Call calls Cloudly for the relay itself, as cloudly.Session.Call does: so
	// that a name that ends custody is heard where it is read.
	Call func(ctx context.Context, sock *typedsocket.Socket, method string, request []byte, o typedsocket.CallOptions) (*typedsocket.Answer, error)
	// OnStaleCredential is told that an answer on its way to an ingress says that
	// the relay's own credential is no longer current (design §4, O10): with the
	// socket to Cloudly it came on and its error.data, good during the call. It
	// runs on that socket's reader and must not block. The answer goes on all the
	// same. Nil is told nothing.
	OnStaleCredential func(upstream *typedsocket.Socket, data []byte)
	// Wall is the wall clock; time.Now if nil. It is shown, nothing is decided by
	// it.
	Wall   func() time.Time
	Log    *duty.Logger
	Events *duty.Events // of a catalogue with EventKinds; nil publishes nothing
}

// Ingress is the duty. Its methods are safe for concurrent use. Those that serve
// a request end it, now or later, and do not block.
type Ingress struct {
	cfg     Config
	metrics metrics
	workers sync.WaitGroup // goroutines that judge pushed tables

	telling sync.Mutex // held while events are published

	mu       sync.Mutex // guards what follows
	crew     *crew      // of this custody
	upstream *typedsocket.Socket
	resume   time.Time // until then a refusal that was read keeps everything back
	draining bool
	table    *held // nil while none is held
	roles    *roles[*peer]
	peers    map[*typedsocket.Socket]*peer

	registering int        // registrations that wait for Cloudly
	asking      int        // questions for counters that wait for an ingress
	pushes      []push     // tables that wait to be judged
	judging     bool       // a goroutine judges them
	serving     int        // answers that are being made of a table
	served      *sync.Cond // serving has become 0

	refused *Refusal // the last registration that was refused; only shown
	judged  [numChecks]duty.Check
	queued  []func() // events to come
}

// peer is a socket that has forwarded a registration. It is known from then until
// it begins to end.
type peer struct {
	conn Conn
	sock *typedsocket.Socket
	ctx  context.Context // ends with the socket, or with custody
	end  context.CancelFunc

	// Guarded by Ingress.mu.
	since    time.Time // of the last acceptance
	accepted uint64    // acceptances
	wanted   int64     // the newest revision to tell it of; 0 for none
	told     int64     // the last it was told of
	knows    int64     // the last whose hint it answered
	knowsAt  time.Time
	hinting  bool   // a goroutine gives it hints
	giveUp   func() // ends the wait for the answer to a hint
	pulls    uint64
	pulled   int64 // the revision it was answered last; 0 for none
	pulledAt time.Time
}

// New returns an Ingress that holds nothing. It fails when the offer does not hold.
func New(cfg Config) (*Ingress, error) {
	if reasons := cfg.Offer.Validate(); len(reasons) > 0 {
		return nil, fmt.Errorf("ingress: own offer: %s", reasons[0])
	}
	if cfg.Call == nil {
		return nil, errors.New("ingress: no way to call cloudly")
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	i := &Ingress{cfg: cfg, crew: newCrew(), roles: newRoles[*peer](), peers: map[*typedsocket.Socket]*peer{}}
	i.served = sync.NewCond(&i.mu)
	i.metrics = i.newMetrics()
	i.judge(cfg.Wall().UTC())
	return i, nil
}

// Name returns the duty's name.
func (i *Ingress) Name() string { return Name }

// publish queues an event. The caller holds mu, and calls flush when it does not
// any more.
func (i *Ingress) publish(t duty.EventType, fields ...field.Field) {
	if i.cfg.Events != nil {
		i.queued = append(i.queued, func() { i.cfg.Events.Publish(t, fields...) })
	}
}

// flush publishes what was queued, in order, and judges the checks by what happened.
func (i *Ingress) flush() {
	defer func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.judge(i.cfg.Wall().UTC())
	}()
	i.telling.Lock()
	defer i.telling.Unlock()
	for do := i.next(); do != nil; do = i.next() {
		do()
	}
}

// next takes the first event that was queued, nil for none.
func (i *Ingress) next() func() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queued) == 0 {
		i.queued = nil // its memory
		return nil
	}
	do := i.queued[0]
	i.queued[0], i.queued = nil, i.queued[1:]
	return do
}
