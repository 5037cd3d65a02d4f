package cloudly

import (
	"sync/atomic"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// gate stands before the handler of Cloudly's requests on one socket.
//
// Cloudly may send right behind its acceptance, before the loop has looked at it.
// Such requests wait, in order, until the session is known to stand: they are
// neither refused nor served too early. While no registration is in flight or
// accepted, and from the moment custody ends, requests are refused.
//
// The handler is called under the lock. So shut returns only when the request that
// is being served has been handed over, and nothing comes after. The lock is a
// channel, because foreign code runs under it: in a test's fake time a mutex that
// waits for such code would stop the clock.
type gate struct {
	handler typedsocket.Handler
	refused func(name contract.RefusalName) // counts
	guard   func(func()) (returned bool)    // recovers from panics and reports them

	// barred is set by whoever reads that custody ends, and looked at before
	// anything is served: the loop shuts the gate a little later.
	barred atomic.Bool

	lock  chan struct{}          // has room for the one that holds it
	mode  gateMode               // guarded by lock
	held  []*typedsocket.Request // guarded by lock
	bytes int                    // of held; guarded by lock
}

func newGate(handler typedsocket.Handler, refused func(contract.RefusalName), guard func(func()) bool) *gate {
	return &gate{handler: handler, refused: refused, guard: guard, lock: make(chan struct{}, 1)}
}

func (g *gate) enter() (leave func()) {
	g.lock <- struct{}{}
	return func() { <-g.lock }
}

type gateMode uint8

const (
	gateShut gateMode = iota
	gateHolding
	gateOpen
)

// serve serves, keeps or refuses a request. It is called by the socket's reader.
func (g *gate) serve(r *typedsocket.Request) {
	defer g.enter()()
	switch {
	case g.mode == gateOpen && !g.barred.Load():
		g.hand(r)
	case g.mode == gateOpen:
		g.refuseUnregistered(r, "custody has ended")
	case g.mode == gateShut:
		g.refuseUnregistered(r, "no registration of this relay stands on this socket")
	case len(g.held) >= heldRequests || g.bytes+r.Size() > heldBytes:
		g.refuse(r, contract.RelayOverloaded, "too much waits for the registration of this relay")
	default:
		g.held = append(g.held, r)
		g.bytes += r.Size()
	}
}

// hand gives a request to the handler. One that panics costs its request alone,
// whether the socket's reader or the loop calls it.
func (g *gate) hand(r *typedsocket.Request) {
	if g.handler == nil {
		r.RefuseMethod()
		return
	}
	if !g.guard(func() { g.handler.ServeRequest(r) }) {
		r.Fail()
	}
}

func (g *gate) refuse(r *typedsocket.Request, name contract.RefusalName, reason string) {
	g.refused(name)
	refusal := contract.Refusal{Name: name, Reason: reason}
	r.Refuse(refusal.Text(), refusal.AppendData(nil))
}

// refuseUnregistered refuses what only a registered session may ask. A hold of
// renewals has a name of its own for that, and no other that its sender knows
// (contract §9.3).
func (g *gate) refuseUnregistered(r *typedsocket.Request, reason string) {
	name := contract.RelayNotReady
	if r.Method() == contract.MethodHoldDNSLeaseRenewals {
		name = contract.EscrowCloudlyOnly
	}
	g.refuse(r, name, reason)
}

// hold keeps requests from now on until open or shut.
func (g *gate) hold() {
	defer g.enter()()
	if g.mode == gateShut {
		g.mode = gateHolding
		g.barred.Store(false) // a name that is heard from here on ends this registration
	}
}

// open serves what was held and then what comes.
func (g *gate) open() {
	defer g.enter()()
	g.mode = gateOpen
	for len(g.held) > 0 {
		r := g.held[0]
		g.held = g.held[1:]
		if g.barred.Load() {
			g.refuseUnregistered(r, "custody has ended")
			continue
		}
		g.hand(r)
	}
	g.held, g.bytes = nil, 0
}

// bar refuses what comes from now on, until the gate has been shut and opened
// again. It does not wait for the request that is being served.
func (g *gate) bar() { g.barred.Store(true) }

// shut refuses what is held and what comes.
func (g *gate) shut() {
	defer g.enter()()
	g.mode = gateShut
	g.barred.Store(false)
	for _, r := range g.held {
		g.refuseUnregistered(r, "the registration of this relay was not accepted")
	}
	g.held, g.bytes = nil, 0
}
