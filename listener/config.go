package listener

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty"
	"serve.zone/relay/typedsocket"
)

// Config is what a Listener is made from. Listen, Address and GetCertificate
// must be set.
type Config struct {
	// Listen opens the TCP listener: the seam.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
	// Address is bound exactly, never a wildcard in its place (contract §16).
	// Port 0 leaves the choice to the system; Addr tells it.
	Address netip.AddrPort
	// GetCertificate returns the origin's certificate. A handshake that finds
	// none, by nil or by an error, fails with an alert.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Routes is the whole table of who serves what. What it leaves out is
	// refused by name.
	Routes []Route
	// Registry serves GET and HEAD below /v2/ and GET of the token path. It is
	// given requests without a dot segment in their path, and sets the write
	// deadlines of its answers itself. Nil answers 404.
	Registry http.Handler
	Log      *duty.Logger
	Events   *duty.Events // of a catalogue with EventKinds; nil publishes nothing
}

// Handler serves a request. As typedsocket.Handler says, it runs on the socket's
// reader, must not block, and owns the request.
type Handler func(*Conn, *typedsocket.Request)

// Route says who serves a method on sockets of a role.
type Route struct {
	Role   string // Unbound, Node or Ingress
	Method string
	Serve  Handler
	// Refuse refuses, in the method's own form, a request that the listener itself
	// turns away: relay-not-ready while it leaves, relay-overloaded, and
	// frame-too-large. It ends the request. Nil is the name alone.
	Refuse func(r *typedsocket.Request, name contract.RefusalName)
}

// table is Routes by role and method.
type table [roles]map[string]Route

func newTable(routes []Route) table {
	var t table
	for r := range t {
		t[r] = map[string]Route{}
	}
	for _, route := range routes {
		r, ok := roleNamed(route.Role)
		switch {
		case !ok:
			panic(fmt.Sprintf("listener: %q is not a role", route.Role))
		case route.Method == "" || route.Serve == nil:
			panic(fmt.Sprintf("listener: a route of role %s has no method or no handler", route.Role))
		case t.serves(r, route.Method):
			panic(fmt.Sprintf("listener: %s has two routes for role %s", route.Method, route.Role))
		}
		t[r][route.Method] = route
	}
	return t
}

// serves reports whether sockets of a role may send the method.
func (t *table) serves(r role, method string) bool { return t[r][method].Serve != nil }

// New returns a listener that is not bound yet. A configuration that cannot be
// right is a mistake of the program and panics.
func New(cfg Config) *Listener {
	if cfg.Listen == nil || cfg.GetCertificate == nil || !cfg.Address.IsValid() {
		panic("listener: Listen, Address and GetCertificate must be set")
	}
	now := time.Now()
	l := &Listener{
		cfg:        cfg,
		routes:     newTable(cfg.Routes),
		log:        cfg.Log.With(),
		state:      starting,
		since:      now,
		slotsSince: now,
		conns:      map[*Conn]struct{}{},
		full:       map[duty.EventType]time.Time{},
	}
	l.metrics = l.newMetrics()
	l.http = &http.Server{
		Handler:                      http.HandlerFunc(l.serveHTTP),
		ReadHeaderTimeout:            headerWait,
		IdleTimeout:                  idleWait,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     cfg.Log.ErrorLog("listener"),
		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * with 200
		Protocols:                    new(http.Protocols),
	}
	l.http.Protocols.SetHTTP1(true)
	return l
}
