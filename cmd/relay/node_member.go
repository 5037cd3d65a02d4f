package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/credential"
	"serve.zone/relay/hub/node/portforward"
	"serve.zone/relay/hub/node/tun"
	"serve.zone/relay/hub/node/userspace"
)

// member is what `relay node` runs. It meets relay.
type member struct {
	settings nodeSettings
	held     node.Credential // that was read before the start
	log      *duty.Logger
	again    chan struct{} // the credential is to be read now; has room for one

	client  *node.Client
	forward *portforward.Forwarder
}

func newMember(s nodeSettings, held node.Credential, log *duty.Logger) *member {
	return &member{settings: s, held: held, log: log, again: make(chan struct{}, 1)}
}

// Start makes the device and binds the ports.
func (m *member) Start(ctx context.Context) (err error) {
	device, rules, err := m.device(ctx)
	if err != nil {
		return err
	}
	m.client, err = node.New(node.Config{Credential: m.held, Device: device, Log: m.log})
	if err != nil {
		closeAll(device, rules)
		return err
	}
	m.forward = portforward.New(m.log, rules...)
	m.log.Info("node-started", field.Address(m.held.Hub), field.PublicKey(m.held.Key.Public().String()), field.Expires(m.held.ExpiresAt))
	return nil
}

// device makes the interface, or the network inside the program with its ports.
func (m *member) device(ctx context.Context) (node.Device, []portforward.Rule, error) {
	s := m.settings
	if !s.userspace {
		options := tun.Options{Name: s.interfaceName, Addresses: s.addresses}
		for _, to := range s.routes {
			route := tun.Route{To: to}
			if len(s.addresses) > 0 {
				route.Source = s.addresses[0].Addr() // the hub drops what has the control address
			}
			options.Routes = append(options.Routes, route)
		}
		device, err := tun.Open(options)
		if err != nil {
			return nil, nil, fmt.Errorf("make the interface: %w", err)
		}
		m.log.Info("node-interface-made")
		return device, nil, nil
	}
	var workload []netip.Addr
	for _, a := range s.addresses {
		workload = append(workload, a.Addr())
	}
	stack, err := userspace.New(workload...)
	if err != nil {
		return nil, nil, err
	}
	rules, err := m.rules(ctx, stack)
	if err != nil {
		closeAll(stack, rules)
		return nil, nil, err
	}
	return stack, rules, nil
}

// rules binds the ports on both sides. Those that are bound are returned beside an error.
func (m *member) rules(ctx context.Context, stack *userspace.Stack) ([]portforward.Rule, error) {
	var rules []portforward.Rule
	for i, f := range m.settings.forwards {
		var system net.ListenConfig
		l, err := system.Listen(ctx, "tcp", f.listen.String())
		if err != nil {
			return rules, fmt.Errorf("--forward, number %d: %w", i+1, err)
		}
		rules = append(rules, portforward.Rule{Listener: l, Dial: func(ctx context.Context) (net.Conn, error) {
			return stack.DialContext(ctx, "tcp", f.to.String())
		}})
		m.log.Info("node-forwards", field.NetAddr(l.Addr()))
	}
	for i, p := range m.settings.publishes {
		for _, a := range m.settings.addresses {
			l, err := stack.Listen("tcp", netip.AddrPortFrom(a.Addr(), p.port).String())
			if err != nil {
				return rules, fmt.Errorf("--publish, number %d: %w", i+1, err)
			}
			rules = append(rules, portforward.Rule{Listener: l, Dial: func(ctx context.Context) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", p.to)
			}})
			m.log.Info("node-publishes", field.NetAddr(l.Addr()))
		}
	}
	return rules, nil
}

func closeAll(device node.Device, rules []portforward.Rule) {
	for _, r := range rules {
		r.Listener.Close()
	}
	device.Close()
}

// Run keeps the tunnel until ctx ends, and says at its end what passed.
func (m *member) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beside sync.WaitGroup
	watcher := credential.Watcher{
		Read: func() (node.Credential, error) { return credential.Read(m.settings.credentialFile) },
		Held: m.held, Again: m.again, Take: m.take, Log: m.log,
	}
	beside.Go(func() { watcher.Run(ctx) })
	beside.Go(func() { m.forward.Run(ctx) })
	err := m.client.Run(ctx)
	cancel()
	beside.Wait()
	m.count()
	return err
}

// Reload has the credential read now.
func (m *member) Reload() {
	select {
	case m.again <- struct{}{}:
	default:
	}
}

// take takes what was found in the credential's file.
func (m *member) take(found node.Credential, err error) {
	if err == nil {
		err = m.client.Renew(found)
	}
	switch {
	case err == nil:
		m.log.Info("node-credential-taken", field.Expires(found.ExpiresAt))
	case errors.Is(err, node.ErrNoSuccessor):
		m.log.Warn("node-credential-refused", field.Reason("no-successor"), field.State(differs(m.held, found)))
	default:
		m.log.Warn("node-credential-refused", field.Reason("not-read"), field.Error(err))
	}
}

// differs names what a credential that is no successor has of its own. Only the expiry
// of what is held ever changes, so it may be that of the start.
func differs(held, found node.Credential) string {
	switch {
	case found.Hub != held.Hub:
		return "another-hub-address"
	case found.HubKey != held.HubKey:
		return "another-hub-key"
	case found.AuthorityID != held.AuthorityID:
		return "another-authority"
	}
	return "another-private-key"
}

// count says what there is to count at the end. Reasons that nothing was counted for are
// left out.
func (m *member) count() {
	s := m.client.Status()
	m.log.Info("node-sent", field.Count(s.Traffic.OutPackets), field.Bytes(s.Traffic.OutBytes))
	m.log.Info("node-received", field.Count(s.Traffic.InPackets), field.Bytes(s.Traffic.InBytes))
	m.log.Info("node-split", field.Count(s.Traffic.OutSplit))
	m.log.Info("node-joined", field.Count(s.Traffic.InJoined))
	if n := s.Traffic.Narrowings; n > 0 {
		m.log.Info("node-narrowings", field.Count(n))
	}
	counts := func(say func(...field.Field), by map[string]uint64) {
		for _, reason := range slices.Sorted(maps.Keys(by)) {
			if n := by[reason]; n > 0 {
				say(field.Reason(reason), field.Count(n))
			}
		}
	}
	counts(func(f ...field.Field) { m.log.Info("node-dropped", f...) }, s.Traffic.Dropped)
	counts(func(f ...field.Field) { m.log.Info("node-refused", f...) }, s.Traffic.Refused)
	ends := map[string]uint64{}
	for reason, n := range s.Endings {
		ends[string(reason)] = n
	}
	m.log.Info("node-tunnels", field.Count(s.Tunnels), field.Attempt(s.Attempts))
	counts(func(f ...field.Field) { m.log.Info("node-ends", f...) }, ends)
	if c := m.forward.Counts(); c.Taken > 0 {
		m.log.Info("node-connections", field.Count(c.Taken), field.Bytes(c.Bytes))
	}
}
