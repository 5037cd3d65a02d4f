package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/endpoint"
	"serve.zone/relay/duty/field"
)

// Operator is the operator endpoint. It is a duty. All methods are safe for
// concurrent use.
type Operator struct {
	cfg     Config
	log     *duty.Logger
	metrics *metrics
	http    *http.Server
	scrape  http.Handler // /metrics
	started time.Time

	duties []*subject[duty.Duty] // Config.Duties, then the operator itself
	ages   []*ages               // of the duties' checks, in the order of duties
	sets   []*subject[*duty.Metrics]

	answers, polls, profiles, dumps places

	leaving chan struct{} // closed when state becomes draining or closed

	mu       sync.Mutex // guards what follows
	state    state
	since    time.Time // of state; only shown
	draining time.Time // when SetDraining was called; zero before
	listener net.Listener
	bound    netip.AddrPort

	work endpoint.Work // requests that are being answered; begun under mu
}

// state is where the endpoint stands. It only goes forward.
type state uint8

const (
	starting state = iota // not bound yet
	serving
	failed   // the accept loop ended by itself, or nothing could be bound
	draining // no new request
	closed
)

var stateNames = [...]string{
	starting: "starting", serving: "serving", failed: "failed", draining: "draining", closed: "closed",
}

func (s state) String() string { return stateNames[s] }

// errNotStarting is a second Bind, or one after Close.
var errNotStarting = errors.New("operator: already bound or closed")

// Bind binds Config.Address, and asks every duty for its checks once. From then on
// Addr tells what was bound, and connections wait for Serve.
func (o *Operator) Bind(ctx context.Context) error {
	o.mu.Lock()
	ready := o.state == starting
	o.mu.Unlock()
	if !ready {
		return errNotStarting
	}
	network := "tcp"
	if o.cfg.Address.Addr().Is4() {
		network = "tcp4" // "tcp" would take the IPv4 wildcard for both families
	}
	listener, err := o.cfg.Listen(ctx, network, o.cfg.Address.String())
	if err == nil {
		if err = o.bind(listener); err != nil {
			listener.Close()
		}
	}
	switch {
	case errors.Is(err, errNotStarting):
		return err // another Bind was faster, or Close; its state stands
	case err != nil:
		o.enter(failed)
		return fmt.Errorf("bind the operator endpoint to %s: %w", o.cfg.Address, err)
	}
	o.cfg.Events.Publish(EventBound, field.Address(o.Addr()))
	// A duty that counts an age from when a check was first judged has it judged now:
	// whoever asks first comes later, maybe by days.
	o.readiness(o.cfg.Wall().UTC())
	return nil
}

// bind takes a listener over, if it is what was asked for.
func (o *Operator) bind(listener net.Listener) error {
	bound, err := netip.ParseAddrPort(listener.Addr().String())
	bound = netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
	want := o.cfg.Address
	if err != nil || bound.Addr() != want.Addr().Unmap() || want.Port() != 0 && bound.Port() != want.Port() {
		return errors.New("another address was bound")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != starting {
		return errNotStarting
	}
	o.state, o.since = serving, o.cfg.Wall()
	o.listener, o.bound = listener, bound
	return nil
}

// Addr returns what was really bound; invalid before Bind.
func (o *Operator) Addr() netip.AddrPort {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bound
}

// Serve accepts connections until Drain or Close, and returns nil then. Any
// other end of the accept loop is an error. Running out of descriptors is none:
// the loop waits and tries again.
func (o *Operator) Serve() error {
	o.mu.Lock()
	listener, s := o.listener, o.state
	o.mu.Unlock()
	switch {
	case listener == nil:
		return errors.New("serve the operator endpoint: it is not bound")
	case s != serving:
		return nil
	}
	err := o.http.Serve(o.capped(listener))
	if !o.enter(failed) {
		return nil // Drain or Close was first
	}
	o.cfg.Events.Publish(EventFailed, field.Error(err))
	return fmt.Errorf("serve the operator endpoint: %w", err)
}

// SetDraining says that the relay is leaving: from now on /readyz is 503 with
// the reason draining. Everything is answered as before.
func (o *Operator) SetDraining() {
	now := o.cfg.Wall()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.draining.IsZero() {
		o.draining = now
	}
}

// Drain ends accepting, lets waiting requests go and the others finish, and
// returns when they have. When ctx ends first, what is left is cut off.
func (o *Operator) Drain(ctx context.Context) error {
	o.SetDraining()
	o.enter(draining)
	o.shut()
	rested := o.work.Rest(ctx)
	last, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	// Shutdown alone would wait for seconds for a peer that connected and has
	// said nothing yet.
	if o.http.Shutdown(last) != nil {
		o.http.Close()
	}
	if !rested {
		return fmt.Errorf("drain the operator endpoint: requests were still being answered: %w", ctx.Err())
	}
	return nil
}

// Close ends everything at once and waits for the requests that were being
// answered, at most endWait.
func (o *Operator) Close() error {
	o.enter(closed)
	o.shut()
	o.http.Close()
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	if !o.work.Rest(ctx) {
		return errors.New("close the operator endpoint: requests have not ended within " + endWait.String())
	}
	return nil
}

// enter changes the state unless it stands there already, or further on.
func (o *Operator) enter(s state) bool {
	now := o.cfg.Wall()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state >= s {
		return false
	}
	if o.state < draining && s >= draining {
		close(o.leaving)
	}
	o.state, o.since = s, now
	return true
}

// shut ends accepting.
func (o *Operator) shut() {
	o.mu.Lock()
	listener := o.listener
	o.mu.Unlock()
	if listener != nil {
		listener.Close()
	}
}

// begin notes a request, if there is still time for one.
func (o *Operator) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state >= draining {
		return false
	}
	o.work.Begin()
	return true
}
