package simulate

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"serve.zone/relay/typedsocket"
)

// Reachability is how a simulated Cloudly treats new connections. Sockets that
// stand are not touched by a change.
type Reachability int

// The ways of being there.
const (
	Serving     Reachability = iota // upgrades and serves, on any path
	Unreachable                     // closes every connection before a byte
	Unavailable                     // answers HTTP 503
	Hanging                         // takes the connection and never answers
	Dying                           // upgrades and closes the socket at once
	Mute                            // upgrades, reads and answers nothing
)

// SetReachability changes how new connections are treated.
func (c *Cloudly) SetReachability(r Reachability) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reachability = r
}

func (c *Cloudly) reached() Reachability {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reachability
}

// Outage makes this Cloudly unreachable and breaks every socket without a word.
func (c *Cloudly) Outage() {
	c.SetReachability(Unreachable)
	c.CutSockets()
}

// Return ends an outage.
func (c *Cloudly) Return() { c.SetReachability(Serving) }

// Serve serves sockets on the listener until Close, which closes it. It does
// not wait, and may be called for several listeners.
func (c *Cloudly) Serve(l net.Listener) error {
	l = &gatedListener{Listener: l, c: c}
	if c.cfg.TLS != nil {
		config := c.cfg.TLS.Clone()
		config.NextProtos = []string{"http/1.1"}
		l = tls.NewListener(l, config)
	}
	if !c.spawn(func() { c.http.Serve(l) }) {
		l.Close()
		return ErrClosed
	}
	return nil
}

// gatedListener puts a gate before every connection, and closes it at once
// while Cloudly is unreachable.
type gatedListener struct {
	net.Listener
	c *Cloudly
}

func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.c.reached() != Unreachable {
			return newGate(conn), nil
		}
		conn.Close()
	}
}

type connKey struct{}

// withConn lets the upgrade find the gate of its connection.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// upgrade makes a socket of a connection, on any path.
func (c *Cloudly) upgrade(w http.ResponseWriter, r *http.Request) {
	if !c.enter() {
		http.Error(w, "ended", http.StatusServiceUnavailable)
		return
	}
	defer c.work.Done()
	mode := c.reached()
	switch mode {
	case Unavailable:
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	case Hanging:
		select {
		case <-r.Context().Done():
		case <-c.done:
		}
		return
	}
	s := c.newSocket(r.Context().Value(connKey{}).(*gate), mode == Mute || mode == Dying)
	socket, err := typedsocket.Accept(w, r, typedsocket.Config{
		Peer:     "relay",
		Limits:   typedsocket.Limits{Frame: cloudlyFrame},
		Handler:  typedsocket.HandlerFunc(func(request *typedsocket.Request) { c.serve(s, request) }),
		Streams:  true,
		Recorder: c.recording(s.number),
	})
	if err != nil {
		c.forgetSocket(s)
		return
	}
	if mode == Dying {
		socket.Close(typedsocket.CloseGoingAway, "simulated cloudly dies")
	}
	c.keepSocket(s, socket)
}
