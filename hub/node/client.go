package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// A Client keeps a node's tunnel to its hub. Its methods may be called from any goroutine.
type Client struct {
	device       Device
	listenPacket func(ctx context.Context, network, address string) (net.PacketConn, error)
	onState      func(Status)
	log          *duty.Logger

	traffic traffic
	mark    echoMark // of the client's own echo requests
	out, in *queue
	mtu     atomic.Int64  // of the tunnel that is up, 0 while there is none
	renewed chan struct{} // the credential was renewed; has room for one

	configured Settings // what the device was told last; of Run's goroutine

	fail     context.CancelCauseFunc // ends Run; set before it begins anything
	panicked atomic.Bool             // a part of it has

	mu         sync.Mutex // guards what follows; see doc.go
	running    bool
	machine    machine
	credential Credential
	link       *link // nil unless the tunnel is up
	attempts   uint64
	tunnels    uint64
	endings    map[Reason]uint64
}

// New returns a client that does nothing until Run is called.
func New(config Config) (*Client, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &Client{
		device:       config.Device,
		listenPacket: config.ListenPacket,
		onState:      config.OnState,
		log:          config.Log,
		mark:         newEchoMark(),
		out:          newQueue(maxQueued),
		in:           newQueue(maxQueued),
		renewed:      make(chan struct{}, 1),
		machine:      machine{random: rand.Float64, state: StateIdle, since: time.Now()},
		credential:   config.Credential,
		endings:      map[Reason]uint64{},
	}
	if c.listenPacket == nil {
		c.listenPacket = systemListenPacket
	}
	return c, nil
}

// Errors of Run.
var (
	// ErrRan is a second call.
	ErrRan = errors.New("node has run already")

	// ErrDevice is a device that gives no packets any more.
	ErrDevice = errors.New("device has failed")

	// ErrPanicked is a mistake of this program or of the device. The log says where.
	ErrPanicked = errors.New("node has panicked")
)

// Run keeps the tunnel until ctx ends, and dials the hub for as long as that takes. It
// closes the device before it returns. Its error is nil unless the device failed by
// itself, or something panicked, which ends the tunnel too: the hub can do nothing to end
// it.
func (c *Client) Run(ctx context.Context) error {
	c.mu.Lock()
	ran := c.running
	c.running = true
	c.mu.Unlock()
	if ran {
		return ErrRan
	}
	ctx, c.fail = context.WithCancelCause(ctx)
	defer c.fail(nil)
	var pumps sync.WaitGroup
	pumps.Go(func() { c.guarded(func() { c.readDevice(ctx) }) })
	pumps.Go(func() { c.guarded(func() { c.writeDevice(ctx) }) })
	c.guarded(func() { c.keep(ctx) })
	c.guarded(func() { c.step(event{kind: stopped}) }) // nothing new but behind a panic
	c.fail(nil)
	var closing error
	if !c.guarded(func() { closing = c.device.Close() }) {
		return ErrPanicked // who reads may go on for ever
	}
	pumps.Wait()
	switch cause := context.Cause(ctx); {
	case c.panicked.Load():
		return ErrPanicked
	case errors.Is(cause, ErrDevice):
		return cause
	case closing != nil && !errors.Is(closing, os.ErrClosed):
		return fmt.Errorf("close device: %w", closing)
	}
	return nil
}

// guarded runs a part of the client and reports whether it returned. A panic is logged,
// without its value, and ends the client.
func (c *Client) guarded(part func()) (returned bool) {
	defer func() {
		if c.log.Recovered(recover()) {
			c.panicked.Store(true)
			c.fail(ErrPanicked)
		}
	}()
	part()
	return true
}

// part is guarded for what tells how a tunnel ended.
func (c *Client) part(run func() event) event {
	end := event{kind: stopped}
	c.guarded(func() { end = run() })
	return end
}

// keep does what the machine says.
func (c *Client) keep(ctx context.Context) {
	next := c.step(event{kind: begun})
	for {
		switch next {
		case dial:
			if ctx.Err() != nil {
				next = c.step(event{kind: stopped})
				continue
			}
			end := c.attempt(ctx)
			if ctx.Err() != nil {
				next = c.step(event{kind: stopped})
				continue
			}
			next = c.step(end)
		case finish:
			return
		default:
			next = c.step(c.wait(ctx))
		}
	}
}

// wait waits for whatever ends the wait between two attempts.
func (c *Client) wait(ctx context.Context) event {
	c.mu.Lock()
	timer := time.NewTimer(time.Until(c.machine.next))
	c.mu.Unlock()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return event{kind: stopped}
		case <-timer.C:
			return event{kind: due}
		case <-c.renewed:
			c.mu.Lock()
			helps := c.machine.last.Reason == HubNotAdmitted
			c.mu.Unlock()
			if helps {
				return event{kind: renewed}
			}
		}
	}
}

// step tells the machine, and everybody else if the state is another one.
func (c *Client) step(e event) action {
	a, status, changed := c.advance(e)
	if changed {
		c.say(status)
		if c.onState != nil {
			c.onState(status)
		}
	}
	return a
}

// advance tells the machine, and returns what the client shows then and whether the state
// is another one.
func (c *Client) advance(e event) (a action, status Status, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.machine.state
	a = c.machine.step(e, time.Now())
	changed = c.machine.state != before
	if changed {
		switch c.machine.state {
		case StateDialling:
			c.attempts++
		case StateUp:
			c.tunnels++
		case StateWaiting:
			c.endings[e.reason]++
		}
	}
	return a, c.status(), changed
}

func (c *Client) say(s Status) {
	switch s.State {
	case StateUp:
		c.log.Info("node-tunnel-up", field.Address(s.Hub), field.Prefix(s.Tunnel.ControlAddress))
	case StateWaiting:
		in := field.Duration(s.Next.Sub(s.Since))
		if s.Last.Up > 0 {
			c.log.Warn("node-tunnel-lost", field.Address(s.Hub), field.Reason(string(s.Last.Reason)), in)
		} else {
			c.log.Info("node-attempt-failed", field.Address(s.Hub), field.Reason(string(s.Last.Reason)),
				field.Attempt(s.Failures), in)
		}
	case StateStopped:
		c.log.Info("node-stopped", field.Address(s.Hub))
	}
}

// Renew takes the successor of the credential: the tunnel goes on. Where the hub did not
// admit the node, it is dialled again at once. A credential that is no successor is
// refused with ErrNoSuccessor, and changes nothing: it needs another Client.
func (c *Client) Renew(successor Credential) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := successor.succeeds(c.credential); err != nil {
		return err
	}
	c.credential.ExpiresAt = successor.ExpiresAt
	select {
	case c.renewed <- struct{}{}:
	default:
	}
	return nil
}
