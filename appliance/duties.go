package appliance

import (
	"context"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/escrow"
	"serve.zone/relay/forward"
	"serve.zone/relay/hub"
	"serve.zone/relay/ingress"
	"serve.zone/relay/listener"
	"serve.zone/relay/typedsocket"
)

// duties makes the duties that stand on the session and the listener: the one list
// that a new duty joins.
func (a *Appliance) duties() ([]part, error) {
	tables, err := a.ingressPart()
	if err != nil {
		return nil, err
	}
	parts := []part{a.escrowPart(), tables}
	if !a.cfg.Settings.Hub.Listen.IsValid() {
		return parts, nil // a relay without a hub, which its registration says
	}
	packets, err := a.hubPart()
	return append(parts, packets), err
}

// hubPart joins the VPN hub (contract §10).
func (a *Appliance) hubPart() (part, error) {
	s := a.cfg.Settings.Hub
	c := hub.Config{
		Address: s.Listen, ListenPacket: a.cfg.ListenPacket, Call: a.call,
		Wall: a.cfg.Wall, Log: a.cfg.Log, Events: a.events,
	}
	var err error
	if s.KeyFile != "" {
		if c.Key, err = readHubKey(s.KeyFile); err != nil {
			return part{}, err
		}
	}
	if a.hub, err = hub.New(c); err != nil {
		return part{}, err
	}
	h := a.hub
	return part{
		duty: h, metrics: h.Metrics(), run: h.Run,
		serves:      map[string]func(*typedsocket.Request){contract.MethodApplyVPNNetwork: h.Apply},
		pulls:       []func(context.Context, *typedsocket.Socket) error{h.Pull},
		suspend:     h.Suspend,
		behindNodes: true, quiesce: h.Quiesce,
		registered: func(sock *typedsocket.Socket, _ cloudly.Accepted) { h.SessionRegistered(sock) },
		lost:       func(error) { h.SessionLost() },
	}, nil
}

// escrowPart joins the escrow of DNS renewals (contract §9).
func (a *Appliance) escrowPart() part {
	e := escrow.New(escrow.Config{Wall: a.cfg.Wall, Log: a.cfg.Log, Events: a.events})
	return part{
		duty: e, metrics: e.Metrics(), run: e.Run,
		serves:     map[string]func(*typedsocket.Request){contract.MethodHoldDNSLeaseRenewals: e.Hold},
		suspend:    func(*typedsocket.Socket) { e.Suspend() },
		quiesce:    e.Quiesce,
		registered: func(*typedsocket.Socket, cloudly.Accepted) { e.SessionRegistered() },
		lost:       func(error) { e.SessionLost() },
		bound: func(b forward.Binding) {
			e.Bound(escrow.Binding{NodeID: b.NodeID, Session: b.Session, Socket: b.Socket, Confirmed: b.Confirmed})
		},
		unbound: e.Unbound,
	}
}

// call calls Cloudly for a duty, so that custody names are heard.
func (a *Appliance) call(ctx context.Context, sock *typedsocket.Socket, method string, request []byte, o typedsocket.CallOptions) (*typedsocket.Answer, error) {
	return a.cloudly.Call(ctx, sock, method, request, o)
}

// ingressPart joins the ingress table (contract §11).
func (a *Appliance) ingressPart() (part, error) {
	i, err := ingress.New(ingress.Config{
		Offer: a.cfg.Settings.Protocol.Offer, Call: a.call,
		OnStaleCredential: func(sock *typedsocket.Socket, data []byte) { a.cloudly.HeardForwarded(sock, data) },
		Wall:              a.cfg.Wall, Log: a.cfg.Log, Events: a.events,
	})
	if err != nil {
		return part{}, err
	}
	register := func(c *listener.Conn, r *typedsocket.Request) { i.Register(c, r) }
	return part{
		duty: i, metrics: i.Metrics(),
		serves: map[string]func(*typedsocket.Request){
			contract.MethodPushRouteTable:       i.PushTable,
			contract.MethodGetTrafficStatistics: i.Statistics,
		},
		routes: []listener.Route{
			{Role: listener.Unbound, Method: contract.MethodRegisterIngress, Serve: register, Refuse: i.TurnAway},
			{Role: listener.Ingress, Method: contract.MethodRegisterIngress, Serve: register, Refuse: i.TurnAway},
			{Role: listener.Ingress, Method: contract.MethodGetIngressRouteTable,
				Serve: func(c *listener.Conn, r *typedsocket.Request) { i.Table(c, r) }},
		},
		pulls:      []func(context.Context, *typedsocket.Socket) error{i.Pull},
		suspend:    i.Suspend,
		registered: func(sock *typedsocket.Socket, _ cloudly.Accepted) { i.SessionRegistered(sock) },
		lost:       func(error) { i.SessionLost() },
	}, nil
}
