package simulate

import (
	"context"
	"slices"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// relaySocket is what Cloudly knows of one physical socket. Its fields are
// guarded by Cloudly.mu.
type relaySocket struct {
	number int
	conn   *gate
	socket *typedsocket.Socket // nil until the upgrade is done
	mute   bool

	generation   int64     // of the credential it authenticated as, 0 before
	wasAccepted  bool      // a registration was accepted here at some time
	sequence     int64     // of the last accepted registration, -1 before
	registering  int       // registrations that were not answered yet
	undispatched time.Time // of the last undispatched refusal, zero when none stands
}

func (c *Cloudly) newSocket(conn *gate, mute bool) *relaySocket {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened++
	s := &relaySocket{number: c.opened, conn: conn, mute: mute, sequence: -1}
	c.sockets[s.number] = s
	return s
}

// keepSocket owns the socket until it has ended.
func (c *Cloudly) keepSocket(s *relaySocket, socket *typedsocket.Socket) {
	c.mu.Lock()
	s.socket = socket
	c.mu.Unlock()
	watched := c.spawn(func() {
		<-socket.Done()
		c.forgetSocket(s)
	})
	if !watched {
		s.conn.Close()
		<-socket.Done()
	}
	c.watch.notify()
}

func (c *Cloudly) forgetSocket(s *relaySocket) {
	c.mu.Lock()
	delete(c.sockets, s.number)
	if c.registered == s {
		c.registered = nil
	}
	c.mu.Unlock()
	c.watch.notify()
}

// serve judges one request and ends it as the script says. The answer is queued
// before the lock is given back, so that no push overtakes it.
func (c *Cloudly) serve(s *relaySocket, r *typedsocket.Request) {
	method := r.Method()
	step := c.script.next(method)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.watch.notify()
	s.socket = r.Socket()
	if s.mute {
		r.Drop()
		return
	}
	c.judgeOrder(s, method)
	var answered func()
	if method == contract.MethodRegisterClusterRelay {
		s.registering++
		if s.registering > 1 {
			c.violated(TwoRegistrations, s.number, method)
		}
		// The lock is held when the answer is not late.
		answered = func() { s.registering-- }
		if step.Delay > 0 {
			answered = func() { c.mu.Lock(); s.registering--; c.mu.Unlock() }
		}
	}
	v := c.scripted(step, r.Body())
	if step.judged() {
		v = c.judge(s, r)
	}
	c.endCustody(s, step, v)
	c.deliver(r, s.conn, step, v, answered)
}

// endCustody notes that a refusal, judged or scripted, tells the relay that
// Cloudly does not dispatch to it (contract §6.1).
func (c *Cloudly) endCustody(s *relaySocket, step Step, v verdict) {
	if v.text == "" || step.Silent || step.Cut {
		return
	}
	if _, undispatched := contract.FindRefusal(v.text, v.data, contract.UndispatchedRefusals()); !undispatched {
		return
	}
	if s.undispatched.IsZero() {
		s.undispatched = c.wall().Add(step.Delay)
	}
	if c.registered == s {
		c.registered = nil
	}
}

// judgeOrder notes what comes too early or on the wrong socket (contract §5.2,
// §5.6). Whether it is refused is the judges' to decide.
func (c *Cloudly) judgeOrder(s *relaySocket, method string) {
	switch {
	case method == c.cfg.ExchangeMethod || method == contract.MethodRegisterCloudlyClientSession:
	case s.generation == 0:
		c.violated(BeforeSession, s.number, method)
	case method == contract.MethodRegisterClusterRelay:
	case !s.wasAccepted:
		c.violated(BeforeRegistration, s.number, method)
	case c.registered != nil && c.registered.number > s.number:
		c.violated(OlderSocket, s.number, method)
	case (c.fromNode(method) || method == contract.MethodRegisterIngress) && !s.undispatched.IsZero() && c.wall().Sub(s.undispatched) > custodyGrace:
		c.violated(AfterCustody, s.number, method)
	}
}

// judge gives a request to its judge.
func (c *Cloudly) judge(s *relaySocket, r *typedsocket.Request) verdict {
	method, body := r.Method(), r.Body()
	switch method {
	case c.cfg.ExchangeMethod:
		return c.exchange(body)
	case contract.MethodRegisterCloudlyClientSession:
		return c.openSession(s, body)
	case contract.MethodRegisterClusterRelay:
		return c.registerRelay(s, body)
	}
	if v, ok := c.fence(s); !ok {
		return v
	}
	if method == contract.MethodRegisterPalletRuntimeSession {
		return c.registerNode(s, body)
	}
	if c.fromNode(method) {
		return c.nodeRequest(s, method, body, r.Facts())
	}
	if answer := c.handlers[method]; answer != nil {
		return handled(answer("", body))
	}
	if method == contract.MethodRegisterIngress {
		return c.registerIngress(s, body)
	}
	return c.pull(s, method, body)
}

// fence refuses a socket that has not authenticated, or whose credential is no
// longer current. The latter may be heard on any call (contract §6.1).
func (c *Cloudly) fence(s *relaySocket) (verdict, bool) {
	switch {
	case s.generation == 0:
		return refuseText("the socket has no client session"), false
	case s.generation != c.credential.generation:
		return refuseNamed(contract.RelayCredentialGenerationStale, "the socket authenticated as an earlier generation"), false
	}
	return verdict{}, true
}

// fromNode reports whether nodes call this method through a relay.
func (c *Cloudly) fromNode(method string) bool {
	m, known := contract.LookupMethod(method)
	return known && m.Takes(contract.NodeToRelay) || slices.Contains(c.cfg.NodeMethods, method)
}

func handled(response []byte, err error) verdict {
	if err != nil {
		return refused(err)
	}
	return verdict{answer: response}
}

// SocketState is what Cloudly knows of a socket that stands.
type SocketState struct {
	Number        int
	Authenticated bool
	Registered    bool // it carries the relay
}

// Sockets returns the sockets that stand, oldest first.
func (c *Cloudly) Sockets() []SocketState {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []SocketState
	for _, s := range c.sockets {
		if s.socket != nil {
			list = append(list, SocketState{s.number, s.generation != 0, c.registered == s})
		}
	}
	slices.SortFunc(list, func(a, b SocketState) int { return a.Number - b.Number })
	return list
}

// Opened returns how many connections have asked for a socket so far, and so
// the number of the newest.
func (c *Cloudly) Opened() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

// Registered returns the number of the socket that carries the relay.
func (c *Cloudly) Registered() (socket int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.registered == nil {
		return 0, false
	}
	return c.registered.number, true
}

// WaitRegistered waits until a socket newer than the given one carries the
// relay, and returns its number. Zero waits for any.
func (c *Cloudly) WaitRegistered(ctx context.Context, newerThan int) (int, error) {
	var socket int
	err := c.Wait(ctx, "a registered relay", func() bool {
		number, ok := c.Registered()
		socket = number
		return ok && number > newerThan
	})
	return socket, err
}

// CutSockets breaks every connection without a word, as a killed peer or a lost
// route does.
func (c *Cloudly) CutSockets() {
	c.eachSocket(func(s *relaySocket) { s.conn.Close() })
}

// CloseSockets ends every socket with this code.
func (c *Cloudly) CloseSockets(code typedsocket.CloseCode) {
	c.eachSocket(func(s *relaySocket) {
		if s.socket != nil {
			s.socket.Close(code, "simulated cloudly closes")
		}
	})
}

// StopReading leaves what arrives on the standing sockets unread. Pongs are
// not read either, so the carrier ends a socket in the end.
func (c *Cloudly) StopReading() { c.eachSocket(func(s *relaySocket) { s.conn.stop() }) }

// ResumeReading ends StopReading.
func (c *Cloudly) ResumeReading() { c.eachSocket(func(s *relaySocket) { s.conn.resume() }) }

func (c *Cloudly) eachSocket(do func(*relaySocket)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sockets {
		do(s)
	}
}
