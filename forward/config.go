package forward

import (
	"sync"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// Name is the name of this duty.
const Name = "forward"

// The roles of a Conn whose requests are served here.
const (
	RoleUnbound = "unbound"
	RoleNode    = "node"
)

// Conn is a socket of the node listener, as the listener knows it. It is the
// same value for every request of one socket.
type Conn interface {
	Socket() *typedsocket.Socket
	// Role returns what the socket is; see RoleUnbound and RoleNode.
	Role() string
	// BindNode gives the socket to a node. It fails, and changes nothing, when
	// the socket has another role or node. It must not block.
	BindNode(nodeID string) error
	// Bound returns the node the socket was given to, "" for none.
	Bound() string
}

// Config is what a Forward is made from. The zero value works.
type Config struct {
	// NodeToCloudly and CloudlyToNode are configured names of methods that pass
	// besides those of the contract (O14).
	NodeToCloudly, CloudlyToNode []string

	// Wall is the wall clock; time.Now if nil. It is shown, nothing is decided
	// by it. It is read under a lock: it must not block.
	Wall   func() time.Time
	Log    *duty.Logger
	Events *duty.Events // of a catalogue with EventKinds; nil publishes nothing

	// The hooks are called in the order of what happened, never two at once.
	// They must not block, and of this package they may call Binding and Bindings
	// alone. Any of them may be nil.

	// OnBound is told of every accepted registration, before its answer leaves.
	OnBound func(Binding)
	// OnUnbound is told of a node that has no binding any more.
	OnUnbound func(nodeID string)
	// OnStaleCredential is told that an answer on its way to a node says that the
	// relay's own credential is no longer current (design §4, O10): with the socket
	// to Cloudly it came on and its error.data, which is good during the call. The
	// answer is forwarded all the same.
	OnStaleCredential func(upstream *typedsocket.Socket, data []byte)
}

// Binding is what a node obtained, and over which socket.
type Binding struct {
	NodeID  string
	Session contract.SessionBinding // shared; not to be changed
	Socket  *typedsocket.Socket
	// Confirmed tells that the binding was obtained from the Cloudly session
	// that stands, or when none does, from the last one. While none stands an
	// unconfirmed one is as good as any (design §4, O9).
	Confirmed bool
	Since     time.Time
}

// Forward is the duty. Its methods are safe for concurrent use.
type Forward struct {
	cfg     Config
	routes  routes
	metrics metrics

	recallMu sync.Mutex // held while a socket is chosen to be recalled and closed
	hookMu   sync.Mutex // held while hooks run

	mu       sync.Mutex          // guards what follows
	upstream *typedsocket.Socket // of the session that stands or was lost; nil after an end of custody
	table    *table[*peer]
	peers    map[*typedsocket.Socket]*peer
	total    total
	draining bool
	recall   chan struct{} // closed to end the recall that runs; nil when none does
	returned chan struct{} // a recall that runs is told of acceptances
	settled  chan struct{} // a drain is told of requests that have ended
	passing  int           // answers of nodes between their judgement and Cloudly's queue
	passed   *sync.Cond    // passing has become 0
	queued   []func()      // hooks and events to come

	overload overload
	sessions duty.Check // node-sessions, as judgeSessions last judged it
}

// New returns a Forward that is attached to nothing yet. It fails when a
// configured method must not pass.
func New(cfg Config) (*Forward, error) {
	routes, err := newRoutes(cfg.NodeToCloudly, cfg.CloudlyToNode)
	if err != nil {
		return nil, err
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	f := &Forward{
		cfg: cfg, routes: routes,
		table:    newTable[*peer](),
		peers:    map[*typedsocket.Socket]*peer{},
		returned: make(chan struct{}, 1),
		settled:  make(chan struct{}, 1),
	}
	f.passed = sync.NewCond(&f.mu)
	f.overload.began = cfg.Wall()
	f.judgeSessions(f.overload.began)
	f.metrics = f.newMetrics()
	return f, nil
}

// Name returns the duty's name.
func (f *Forward) Name() string { return Name }

// Binding returns what a node obtained, and false for a node that is not carried.
func (f *Forward) Binding(nodeID string) (Binding, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.table.bindings[nodeID]
	if b == nil {
		return Binding{}, false
	}
	return public(b), true
}

// Bindings returns every binding, in no order.
func (f *Forward) Bindings() []Binding {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Binding, 0, len(f.table.bindings))
	for _, b := range f.table.bindings {
		all = append(all, public(b))
	}
	return all
}

// later queues a hook or an event. The caller holds mu, and calls flush when it
// does not any more.
func (f *Forward) later(do func()) { f.queued = append(f.queued, do) }

// flush runs what was queued, in order. When it returns, what the caller has
// queued has run.
func (f *Forward) flush() {
	f.hookMu.Lock()
	defer f.hookMu.Unlock()
	for do := f.next(); do != nil; do = f.next() {
		f.run(do)
	}
}

// run runs one hook or event. One that panics must not cost the request on whose
// way it was called.
func (f *Forward) run(do func()) {
	defer func() { f.cfg.Log.Recovered(recover()) }()
	do()
}

// next takes the first of what was queued, nil for none.
func (f *Forward) next() func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queued) == 0 {
		f.queued = nil // its memory
		return nil
	}
	do := f.queued[0]
	f.queued[0], f.queued = nil, f.queued[1:]
	return do
}

// signal wakes who waits on a channel with room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
