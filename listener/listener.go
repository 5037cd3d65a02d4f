package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/endpoint"
	"serve.zone/relay/duty/failpoint"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// Listener is the node listener. It is a duty. All methods are safe for
// concurrent use.
type Listener struct {
	cfg     Config
	routes  table
	log     *duty.Logger
	metrics *metrics
	http    *http.Server
	leaving atomic.Bool // state is draining or closed

	mu         sync.Mutex // guards what follows
	state      state
	since      time.Time // of state; only shown
	listener   net.Listener
	bound      netip.AddrPort
	slots      int       // sockets that stand or are being upgraded
	slotsSince time.Time // since when all are taken, or one is free again; only shown
	conns      map[*Conn]struct{}
	gone       typedsocket.Tally // of sockets that were released
	full       map[duty.EventType]time.Time

	work endpoint.Work // goroutines and handlers that Close waits for
}

// state is where a listener stands. It only goes forward.
type state uint8

const (
	starting state = iota // not bound yet
	serving
	failed   // the accept loop ended by itself, or nothing could be bound
	draining // no new socket, no new request
	closed
)

var stateNames = [...]string{
	starting: "starting", serving: "serving", failed: "failed", draining: "draining", closed: "closed",
}

func (s state) String() string { return stateNames[s] }

// errNotStarting is a second Bind, or one after Close.
var errNotStarting = errors.New("listener: already bound or closed")

// Bind binds Config.Address. From then on Addr tells what was bound, and
// connections wait for Serve.
func (l *Listener) Bind(ctx context.Context) error {
	l.mu.Lock()
	ready := l.state == starting
	l.mu.Unlock()
	if !ready {
		return errNotStarting
	}
	listener, err := failpoint.Listen(failpoint.NodeConnection, l.cfg.Listen)(ctx, "tcp4", l.cfg.Address.String())
	if err == nil {
		if err = l.bind(listener); err != nil {
			listener.Close()
		}
	}
	if err != nil {
		l.enter(failed)
		return fmt.Errorf("bind the node listener to %s: %w", l.cfg.Address, err)
	}
	l.publish(EventBound, field.Address(l.Addr()))
	return nil
}

// bind takes a listener over, if it is what was asked for.
func (l *Listener) bind(listener net.Listener) error {
	bound, err := netip.ParseAddrPort(listener.Addr().String())
	bound = netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port())
	want := l.cfg.Address
	if err != nil || bound.Addr() != want.Addr() || want.Port() != 0 && bound.Port() != want.Port() {
		return errors.New("another address was bound")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != starting {
		return errNotStarting
	}
	l.state, l.since = serving, time.Now()
	l.listener, l.bound = listener, bound
	return nil
}

// Addr returns what was really bound; invalid before Bind.
func (l *Listener) Addr() netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bound
}

// Serve accepts connections until Drain or Close, and returns nil then. Any
// other end of the accept loop is an error, after which sockets that stand go
// on. Running out of descriptors is none: the loop waits and tries again (B155).
func (l *Listener) Serve() error {
	l.mu.Lock()
	listener, s := l.listener, l.state
	l.mu.Unlock()
	switch {
	case listener == nil:
		return errors.New("serve the node listener: it is not bound")
	case s != serving:
		return nil
	}
	err := l.http.Serve(tls.NewListener(l.capped(listener), l.tls()))
	if !l.enter(failed) {
		return nil // Drain or Close was first
	}
	l.publish(EventFailed, field.Error(err))
	return fmt.Errorf("serve the node listener: %w", err)
}

// tls is the configuration of every handshake.
func (l *Listener) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		// A resumed session would not see a certificate that was swapped since.
		SessionTicketsDisabled: true,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			certificate, err := l.cfg.GetCertificate(hello)
			if err != nil || certificate == nil {
				l.metrics.uncertified.Inc()
				return nil, errNoCertificate
			}
			return certificate, nil
		},
	}
}

// errNoCertificate has the words by which the log recognises the line that
// net/http makes of it.
var errNoCertificate = errors.New("tls: no certificates configured")

// enter changes the state unless it stands there already, or further on.
func (l *Listener) enter(s state) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= s {
		return false
	}
	l.state, l.since = s, time.Now()
	l.leaving.Store(s >= draining)
	return true
}

// Close ends everything at once: the listener, plain requests and, with 1001,
// every socket. It waits for what they leave behind, at most 5 s.
func (l *Listener) Close() error {
	l.enter(closed)
	l.shut()
	l.http.Close()
	for _, c := range l.sockets() {
		c.sock.Cut(typedsocket.CloseGoingAway, "the relay ends")
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	if !l.work.Rest(ctx) {
		return errors.New("close the node listener: sockets have not ended within " + endWait.String())
	}
	return nil
}

// shut ends accepting.
func (l *Listener) shut() {
	l.mu.Lock()
	listener := l.listener
	l.mu.Unlock()
	if listener != nil {
		listener.Close()
	}
}

// sockets returns the sockets that stand now.
func (l *Listener) sockets() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	conns := make([]*Conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	return conns
}
