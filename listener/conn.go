package listener

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// Why a socket cannot take a role.
var (
	// ErrBound is a socket that has another role, or the same for another node.
	ErrBound = errors.New("the socket is bound otherwise")
	// ErrEnded is a socket that has ended or is ending.
	ErrEnded = errors.New("the socket has ended")
	// ErrNodeID is a name that is no node id (contract §2.1).
	ErrNodeID = errors.New("not a node id")
)

// Conn is one socket of the listener, with its role. All methods are safe for
// concurrent use.
type Conn struct {
	l       *Listener
	address netip.AddrPort // the peer's; invalid when it has none
	since   time.Time      // only shown

	ready chan struct{} // closed when what follows is set
	sock  *typedsocket.Socket
	timer *time.Timer // calls expire

	role atomic.Uint32 // a role; changed under mu

	mu      sync.Mutex // guards what follows
	nodeID  string
	expired bool // no registration was accepted in time
	hooks   []func()
	over    bool // the hooks were called
}

func newConn(l *Listener, remote string) *Conn {
	address, _ := netip.ParseAddrPort(remote)
	return &Conn{l: l, address: address, since: time.Now(), ready: make(chan struct{})}
}

// socketConfig is the carrier's configuration of the socket.
func (c *Conn) socketConfig() typedsocket.Config {
	return typedsocket.Config{
		Peer:         "a node or ingress",
		Limits:       socketLimits,
		Handler:      c,
		OverloadName: string(contract.RelayOverloaded),
		Panicked:     func(value any, _ []byte) { c.l.log.Recovered(value, field.Role(c.Role())) },
		Ended:        c.ended,
	}
}

// Socket returns the socket.
func (c *Conn) Socket() *typedsocket.Socket { return c.sock }

// Role returns Unbound, Node or Ingress.
func (c *Conn) Role() string { return c.currentRole().String() }

func (c *Conn) currentRole() role { return role(c.role.Load()) }

// Bound returns the node id that the socket is bound to, as a node or as the
// ingress of that node; "" while it is unbound.
func (c *Conn) Bound() string {
	_, nodeID := c.binding()
	return nodeID
}

func (c *Conn) binding() (role, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.currentRole(), c.nodeID
}

// BindNode makes an unbound socket that of a node, whose registration was
// accepted: its time to register ends, and it may send frames of 4 MiB. A
// socket that is bound to the same node already stays as it is (rotation,
// contract §7.1). Errors: ErrBound, ErrEnded, ErrNodeID; they change nothing.
func (c *Conn) BindNode(nodeID string) error {
	return c.bind(node, nodeID, contract.NodeFrameLimit)
}

// BindIngress makes an unbound socket that of the ingress of a node. As
// BindNode, with frames of 1 MiB, of which a request may have 64 KiB (contract
// §19).
func (c *Conn) BindIngress(nodeID string) error {
	return c.bind(ingress, nodeID, contract.IngressFrameLimit)
}

func (c *Conn) bind(to role, nodeID string, frameLimit int) error {
	if !contract.IsNodeID(nodeID) {
		return ErrNodeID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.currentRole()
	switch {
	case c.expired || c.sock.Err() != nil:
		return ErrEnded
	case held == to && c.nodeID == nodeID:
		return nil
	case held != unbound:
		return ErrBound
	}
	c.nodeID = nodeID
	c.role.Store(uint32(to))
	c.sock.SetFrameLimit(frameLimit, frameLimit)
	c.sock.SetUnreadLimit(0) // from here on Limits.Own bounds what it does not read
	c.timer.Stop()
	// Under the lock, so that the end of the socket counts the role it had.
	c.l.metrics.sockets.Of(unbound).Add(-1)
	c.l.metrics.sockets.Of(to).Add(1)
	return nil
}

// OnClose adds a function that is called once when the socket begins to end:
// nothing can be sent on it any more. Functions are called in the order they
// were added, on a goroutine of the socket, which has not ended before they have
// returned. One that is added after that is called at once, on a goroutine of its
// own.
func (c *Conn) OnClose(f func()) {
	c.mu.Lock()
	over := c.over
	if !over {
		c.hooks = append(c.hooks, f)
	}
	c.mu.Unlock()
	if over {
		c.l.work.Begin()
		go func() {
			defer c.l.work.End()
			c.call(f)
		}()
	}
}

// expire ends a socket that is still unbound. Whatever comes first, this or
// the binding, is final.
func (c *Conn) expire() {
	<-c.ready
	c.mu.Lock()
	c.expired = c.currentRole() == unbound
	expired := c.expired
	c.mu.Unlock()
	if expired {
		c.sock.Close(typedsocket.CloseUnregistered, "no registration was accepted within "+registrationWait.String())
	}
}

// ended is called by the socket when it begins to end.
func (c *Conn) ended(*typedsocket.EndError) {
	<-c.ready
	c.timer.Stop()
	lasted := time.Since(c.since)
	c.mu.Lock()
	for len(c.hooks) > 0 {
		hooks := c.hooks
		c.hooks = nil
		c.mu.Unlock()
		for _, f := range hooks {
			c.call(f)
		}
		c.mu.Lock()
	}
	c.over = true
	c.mu.Unlock()
	go func() {
		defer c.l.release(c)
		<-c.sock.Done()
		c.gone(lasted)
	}()
}

// call calls a hook. One that panics costs its own work alone.
func (c *Conn) call(f func()) {
	defer func() { c.l.log.Recovered(recover(), field.Role(c.Role())) }()
	f()
}

// gone counts and says that the socket has ended, and how long it stood.
func (c *Conn) gone(lasted time.Duration) {
	r, nodeID := c.binding()
	l, why := c.l, causeOf(c.sock.Err())
	l.metrics.sockets.Of(r).Add(-1)
	l.metrics.closed.Of(why).Inc()
	fields := []field.Field{
		field.Role(r.String()), field.Node(nodeID), field.Address(c.address), field.Reason(why.String()),
		field.CloseCode(closeCode(c.sock.Err())), field.Duration(lasted),
	}
	if r == unbound {
		// Anybody can cause these: they must not push others out of the ring.
		l.log.Debug("listener-unbound-socket-closed", fields...)
		return
	}
	l.publish(EventSocketClosed, fields...)
}
