package escrow

import (
	"context"
	"errors"
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// Name is the name of this duty.
const Name = "escrow"

// Config is what an Escrow is made from. The zero value works.
type Config struct {
	// Wall is the wall clock; time.Now if nil. Windows are judged by it, and it may
	// step. It must not block.
	Wall func() time.Time
	// Push gives a node the body of one applyRuntimeNetworkDnsLeaseRenewal request
	// and returns the bytes of its answer, which the escrow owns then. It uses the
	// socket of the binding and no other. Once recalled is closed it sends nothing
	// any more, and waits on for the answer of what it has sent; once its context has
	// ended it sends nothing and returns soon. An error that matches
	// typedsocket.ErrClosed tells that the socket is gone; *typedsocket.RemoteError
	// that the node refused. Nil calls the socket: see Call.
	Push func(ctx context.Context, recalled <-chan struct{}, b Binding, body []byte) (answer []byte, err error)

	Log    *duty.Logger
	Events *duty.Events // of a catalogue with EventKinds; nil publishes nothing
}

// Binding is what a node obtained, and over which socket (contract §7.1).
type Binding struct {
	NodeID  string
	Session contract.SessionBinding // shared; not to be changed
	Socket  *typedsocket.Socket
	// Confirmed tells that the binding was obtained from the session to Cloudly that
	// stands. Bound is told only of such, or of older ones at the start.
	Confirmed bool
}

// Escrow is the duty. Its methods are safe for concurrent use. None but Run, Drain
// and DropCustody waits for anything.
type Escrow struct {
	cfg     Config
	start   time.Time // of monotonic time
	metrics metrics
	wake    chan struct{} // the loop is to look again; has room for one
	landed  chan struct{} // a drain is told of pushes that have ended; has room for one
	tellMu  sync.Mutex    // held while events are published

	mu      sync.Mutex // guards what follows
	machine *machine
	flights map[*push]*flight
	// unread are sockets that may still have a push to write: none was answered since
	// the last one was handed over.
	unread  map[*typedsocket.Socket]struct{}
	refused refusals
	checked [2]duty.Check // as judged last
}

// flight is one push that is under way.
type flight struct {
	recall func()             // has nothing of it be sent any more; may be called again
	cancel context.CancelFunc // ends it, and the wait for its answer
	done   chan struct{}      // closed when Push has returned
}

// New returns an Escrow that holds nothing.
func New(cfg Config) *Escrow {
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.Push == nil {
		cfg.Push = Call
	}
	e := &Escrow{
		cfg: cfg, start: time.Now(),
		wake: make(chan struct{}, 1), landed: make(chan struct{}, 1),
		flights: map[*push]*flight{}, unread: map[*typedsocket.Socket]struct{}{},
	}
	e.machine = newMachine(e.now())
	e.judge(cfg.Wall().UTC())
	e.metrics = e.newMetrics()
	return e
}

// Name returns the duty's name.
func (e *Escrow) Name() string { return Name }

// now reads both clocks. The caller holds mu, so that readings keep their order. A
// reading that a pause fell into, as of a machine that was stopped, would look like
// a step, and is taken again.
func (e *Escrow) now() instant {
	for n := 1; ; n++ {
		mono := time.Since(e.start)
		wall := e.cfg.Wall().Round(0)
		if time.Since(e.start)-mono < readingTakes || n == readings {
			return instant{wall, mono}
		}
	}
}

// errNoSocket is a binding without a socket.
var errNoSocket = errors.New("escrow: the binding has no socket")

// Call is the Push of a relay: it calls the node on the socket of the binding,
// ahead of what is forwarded to it.
func Call(ctx context.Context, recalled <-chan struct{}, b Binding, body []byte) ([]byte, error) {
	if b.Socket == nil {
		return nil, errNoSocket
	}
	answer, err := b.Socket.Call(ctx, contract.MethodApplyDNSLeaseRenewal, body, typedsocket.CallOptions{Timeout: pushWait, Recalled: recalled})
	if err != nil {
		typedsocket.EraseRefusal(err) // nobody looks at its data
		return nil, err
	}
	defer answer.Release()
	return append([]byte(nil), answer.Response()...), nil
}
