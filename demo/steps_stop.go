package demo

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"serve.zone/relay/hub/node"
)

// stop ends the relay as SIGTERM does, and looks at what its peers saw of it.
func (c *cluster) stop(ctx context.Context, e *evidence) error {
	began := time.Now()
	if err := c.relay.stop(); err != nil {
		return mismatch("a drain without an error", "%v", err)
	}
	took := time.Since(began)
	e.add(fromRelay, fmt.Sprintf("drained and ended without an error after %.1f s", took.Seconds()), "seconds", seconds(took))
	for _, m := range c.nodes {
		err := eventually(ctx, settleWait, func() error {
			if s := m.tunnel.Status(); s.Endings[node.HubDraining] != 1 {
				return mismatch("the tunnel of "+m.name+" ended with the reason "+string(node.HubDraining), "endings %v", given(s.Endings))
			}
			if _, registered := m.pallet.Registered(); registered {
				return mismatch("no session of "+m.name, "it has one")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	e.add(fromNodes, fmt.Sprintf("have no session any more, and were told by the hub why their tunnels ended: %s", node.HubDraining), "reason", node.HubDraining)
	err := eventually(ctx, settleWait, func() error {
		if n := len(c.cloudly.Sockets()); n != 0 {
			return mismatch("no socket of the relay at Cloudly", "%d", n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if v := c.violations(); len(v) > 0 {
		return mismatch("no rule of the contract broken", "%s", v[0])
	}
	e.add(cloudlyName, "has no socket any more, and no peer has noticed a breach of the contract", "sockets", 0, "violations", 0)
	for _, address := range []string{c.relay.nodeListener(), c.relay.address()} {
		if conn, err := net.DialTimeout("tcp", address, settleWait); err == nil {
			conn.Close()
			return mismatch("nothing that listens at "+address, "a connection")
		}
	}
	return nil
}

// given are the reasons for which something ended at all.
func given(endings map[node.Reason]uint64) []string {
	var reasons []string
	for reason, n := range endings {
		if n > 0 {
			reasons = append(reasons, string(reason))
		}
	}
	slices.Sort(reasons)
	return reasons
}

// violations are the breaches of the contract that the simulated peers noticed.
func (c *cluster) violations() []string {
	var all []string
	note := func(peer string, n int, first func() string) {
		if n > 0 {
			all = append(all, peer+": "+first())
		}
	}
	v := c.cloudly.Violations()
	note(cloudlyName, len(v), func() string { return v[0].String() })
	for _, m := range c.nodes {
		v := m.pallet.Violations()
		note(m.name, len(v), func() string { return v[0].String() })
	}
	if c.ingress != nil {
		v := c.ingress.Violations()
		note(ingressName, len(v), func() string { return v[0].String() })
	}
	return all
}
