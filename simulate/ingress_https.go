package simulate

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
)

// web is the side of an ingress that faces clients. Its lock comes after
// Ingress.mu and takes nothing.
type web struct {
	i        *Ingress
	server   *http.Server
	secured  *handover // connections whose handshake is done
	tls      *tls.Config
	proxy    http.Handler
	backends *http.Transport
	ended    context.Context // of the ingress, for dials that outlive their request
	end      context.CancelFunc

	mu        sync.Mutex
	serving   bool                   // the server is
	closed    bool                   // nothing begins any more
	listeners map[io.Closer]struct{} // those that accept
	conns     map[*clientConn]struct{}
	refused   ClientRefusals
	turn      map[string]int // of destinations, by route
}

// ClientRefusals counts clients that were sent away before a request or a byte of
// theirs was looked at.
type ClientRefusals struct {
	Handshakes int64 // no certificate for the name, no TLS 1.2 or later, or too slow
	Overload   int64 // more connections than maximumConnections
	NoRoute    int64 // connections to a port that no port route names
}

// ClientsRefused returns how many clients were sent away so far.
func (i *Ingress) ClientsRefused() ClientRefusals {
	i.web.mu.Lock()
	defer i.web.mu.Unlock()
	return i.web.refused
}

func (w *web) begin(i *Ingress) {
	w.i = i
	w.ended, w.end = context.WithCancel(context.Background())
	w.secured = &handover{conns: make(chan net.Conn), done: i.done}
	w.listeners, w.conns, w.turn = map[io.Closer]struct{}{}, map[*clientConn]struct{}{}, map[string]int{}
	w.tls = w.tlsConfig()
	silent := log.New(io.Discard, "", 0)
	w.backends = newBackends(w)
	w.proxy = newProxy(w, silent)
	w.server = &http.Server{
		Handler:           http.HandlerFunc(w.serveHTTP),
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState:         w.served,
		ReadHeaderTimeout: headerWait, IdleTimeout: clientIdle,
		DisableGeneralOptionsHandler: true, // a backend's to answer, where it has a path
		MaxHeaderBytes:               maximumHeader, ErrorLog: silent,
	}
}

// close ends what begins and what stands. It waits for nothing.
func (w *web) close() {
	w.end()
	w.mu.Lock()
	w.closed = true
	for l := range w.listeners {
		l.Close()
	}
	for c := range w.conns {
		c.under.Close() // which ends whatever stands on it
	}
	w.mu.Unlock()
	w.backends.CloseIdleConnections() // from now on none stays idle
}

// Serve terminates HTTPS on the listener for the hostnames of the table that is
// held, until Close, which closes it. It does not wait, and may be called for
// several listeners.
//
// The certificate is that of the route whose hostname the client names in its
// handshake (SNI); without a route, or without a name, the handshake fails. Only
// TLS 1.2 and later and HTTP/1.1 are spoken. A request is forwarded to one of the
// route's destinations in plain HTTP, the next one in turn, or the one after that
// when there is no connection. Its Host must be the name of the handshake (421
// otherwise). Where the route has Basic authentication it is demanded (401) and
// not passed on. The backend is told the client in X-Forwarded-For, -Host and
// -Proto.
func (i *Ingress) Serve(l net.Listener) error {
	if !i.web.startServer() {
		l.Close()
		return ErrClosed
	}
	return i.web.accept(l, i.web.secure)
}

// startServer starts the one server behind all listeners.
func (w *web) startServer() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.serving && !w.closed {
		w.serving = w.i.spawn(func() { w.server.Serve(w.secured) })
	}
	return w.serving && !w.closed
}

// accept takes connections until the listener is closed.
func (w *web) accept(l net.Listener, serve func(*clientConn)) error {
	w.mu.Lock()
	began := !w.closed && w.i.spawn(func() { w.keepAccepting(l, serve) })
	if began {
		w.listeners[l] = struct{}{}
	}
	w.mu.Unlock()
	if !began {
		l.Close()
		return ErrClosed
	}
	return nil
}

func (w *web) keepAccepting(l net.Listener, serve func(*clientConn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			// Anything but the end may pass, such as a lack of file descriptors.
			if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || !w.i.pause(acceptAgain) {
				return
			}
			continue
		}
		if c := w.admit(conn); c == nil {
			conn.Close()
		} else if !w.i.spawn(func() { serve(c) }) {
			c.Close()
		}
	}
}

// admit takes a connection up, nil when there are too many.
func (w *web) admit(conn net.Conn) *clientConn {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	if len(w.conns) >= maximumConnections {
		w.refused.Overload++
		return nil
	}
	c := newClientConn(conn, w)
	w.conns[c] = struct{}{}
	return c
}

func (w *web) refuse(change func(*ClientRefusals)) {
	w.mu.Lock()
	change(&w.refused)
	w.mu.Unlock()
	w.i.watch.notify()
}

// secure does the handshake and hands the connection to the server.
func (w *web) secure(c *clientConn) {
	secured := tls.Server(c.under, w.tls)
	ctx, cancel := context.WithTimeout(w.ended, headerWait)
	defer cancel()
	err := secured.HandshakeContext(ctx)
	name := strings.ToLower(secured.ConnectionState().ServerName)
	if err != nil || w.i.route(name) == nil {
		w.refuse(func(r *ClientRefusals) { r.Handshakes++ })
		c.Close()
		return
	}
	w.i.count(name, Traffic{Connections: 1})
	if !w.i.enter() {
		c.Close()
	} else if !w.secured.hand(c.over(secured, name)) {
		c.Close()
		w.i.work.Done()
	}
}

// served ends the ownership of a connection that was handed to the server. A
// request that has taken it over is owned by itself.
func (w *web) served(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		w.i.work.Done()
	}
}

// tlsConfig picks certificates from the table. There are no tickets: a session that
// is taken up again picks none, and would outlive its route.
func (w *web) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
		// Neither a certificate nor an error becomes the alert unrecognized_name.
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if route := w.i.route(strings.ToLower(hello.ServerName)); route != nil {
				return route.certificate, nil
			}
			return nil, nil
		},
	}
}

// route returns the route of a hostname in the table that is held, nil for none.
func (i *Ingress) route(hostname string) *servedRoute {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.table == nil {
		return nil
	}
	return i.table.routes[hostname]
}

// handover is a listener of connections that something else has accepted.
type handover struct {
	conns chan net.Conn
	done  <-chan struct{}
}

func (h *handover) hand(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.done:
		return false
	}
}

// Accept returns the next connection, or net.ErrClosed.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close does nothing: the owner ends it.
func (h *handover) Close() error { return nil }

// Addr returns an address that means nothing.
func (h *handover) Addr() net.Addr { return &net.IPAddr{} }
