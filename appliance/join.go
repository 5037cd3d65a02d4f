package appliance

import (
	"context"
	"fmt"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/forward"
	"serve.zone/relay/listener"
	"serve.zone/relay/typedsocket"
)

// cloudlyRequest serves a request of Cloudly on the registered socket: the duty
// whose own method it is, or the node that it names.
func (a *Appliance) cloudlyRequest(r *typedsocket.Request) {
	if serve := a.serves[r.Method()]; serve != nil {
		serve(r)
		return
	}
	a.forward.CloudlyRequest(r)
}

// served joins the own methods of all parts.
func served(parts []part) (map[string]func(*typedsocket.Request), error) {
	all := map[string]func(*typedsocket.Request){}
	for _, p := range parts {
		for method, serve := range p.serves {
			if all[method] != nil {
				return nil, fmt.Errorf("appliance: two duties serve %s", method)
			}
			all[method] = serve
		}
	}
	return all, nil
}

// nodeRoutes are what forward serves on the node listener: a registration on a
// socket without a role, and on a node's socket everything that passes.
func (a *Appliance) nodeRoutes(extra []string) []listener.Route {
	serve := func(c *listener.Conn, r *typedsocket.Request) { a.forward.NodeRequest(c, r) }
	routes := []listener.Route{{
		Role: listener.Unbound, Method: contract.MethodRegisterPalletRuntimeSession, Serve: serve,
	}}
	names := map[string]bool{}
	for _, m := range contract.Methods() {
		if m.Class == contract.Forwarded && m.Takes(contract.NodeToRelay) {
			names[m.Name] = true
		}
	}
	for _, name := range extra {
		names[name] = true
	}
	for name := range names {
		routes = append(routes, listener.Route{Role: listener.Node, Method: name, Serve: serve})
	}
	return routes
}

// hooks are what the session to Cloudly tells. forward comes first in each: the
// other duties act on what it holds.
func (a *Appliance) hooks() cloudly.Hooks {
	return cloudly.Hooks{
		OnRegistered: func(sock *typedsocket.Socket, accepted cloudly.Accepted) {
			a.upstream.Store(sock)
			a.forward.UpstreamRegistered(sock)
			for _, p := range a.parts {
				if p.registered != nil {
					p.registered(sock, accepted)
				}
			}
		},
		OnLost: func(why error) {
			a.forward.UpstreamLost()
			for _, p := range a.parts {
				if p.lost != nil {
					p.lost(why)
				}
			}
		},
		OnConfiguration: func(c contract.ClusterConfiguration) {
			for _, p := range a.parts {
				if p.configured != nil {
					p.configured(c)
				}
			}
		},
		OnCustodyHeard: a.custodyHeard,
		OnCustodyEnded: a.dropCustody,
	}
}

// custodyHeard keeps anything more of the old custody from leaving, until the drop.
func (a *Appliance) custodyHeard(sock *typedsocket.Socket) {
	a.forward.Suspend(sock)
	a.suspend(sock)
}

// suspend stops the duties that hold something, before any of them drops it: the
// drop of another may have to wait for a socket.
func (a *Appliance) suspend(sock *typedsocket.Socket) {
	for _, p := range a.later {
		if p.suspend != nil {
			a.guarded(p.duty.Name(), func() { p.suspend(sock) })
		}
	}
}

// dropCustody drops what every duty holds for the cluster. It returns when
// nothing of it can leave any more (contract §6.2). A duty that panics must not
// keep the others from dropping theirs, and leaves a relay that may hold what it
// must not: so the relay ends.
func (a *Appliance) dropCustody(name contract.RefusalName) {
	if sock := a.upstream.Load(); sock != nil {
		a.suspend(sock)
	}
	var broken error
	for _, p := range a.parts {
		if !a.guarded(p.duty.Name(), func() { p.duty.DropCustody(string(name)) }) {
			broken = fmt.Errorf("appliance: the duty %s did not drop custody", p.duty.Name())
		}
	}
	if broken != nil {
		a.fail(broken)
	}
}

// forwardConfig is what forward is told, and what it tells the others.
func (a *Appliance) forwardConfig() forward.Config {
	protocol := a.cfg.Settings.Protocol
	return forward.Config{
		NodeToCloudly: protocol.NodeToCloudly, CloudlyToNode: protocol.CloudlyToNode,
		Wall: a.cfg.Wall, Log: a.cfg.Log, Events: a.events,
		// One that panics must not keep those behind it from being told.
		OnBound: func(b forward.Binding) {
			for _, p := range a.parts {
				if p.bound != nil {
					a.guarded(p.duty.Name(), func() { p.bound(b) })
				}
			}
		},
		OnUnbound: func(nodeID string) {
			for _, p := range a.parts {
				if p.unbound != nil {
					a.guarded(p.duty.Name(), func() { p.unbound(nodeID) })
				}
			}
		},
		OnStaleCredential: func(upstream *typedsocket.Socket, data []byte) { a.cloudly.HeardForwarded(upstream, data) },
	}
}

// guarded calls f for a duty and reports whether it returned; a panic is logged.
func (a *Appliance) guarded(name string, f func()) (returned bool) {
	defer func() { a.cfg.Log.Recovered(recover(), field.Duty(name)) }()
	f()
	return true
}

// running wraps the standing work of a duty: a panic of it is a failure of the
// relay, and so is an end that nobody asked for.
func (a *Appliance) running(ctx context.Context, name string, run func(context.Context) error) {
	err := fmt.Errorf("appliance: the duty %s panicked", name)
	a.guarded(name, func() { err = run(ctx) })
	switch {
	case ctx.Err() != nil && err == nil:
	case err == nil:
		a.fail(fmt.Errorf("appliance: the duty %s ended of its own accord", name))
	default:
		a.fail(err)
	}
}
