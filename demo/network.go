package demo

import (
	"context"
	"fmt"
	"strings"

	"serve.zone/relay/contract"
	"serve.zone/relay/operator/client"
)

// grants are the pairs of nodes between which packets may pass, in the order that a
// network wants them in.
func grants(pairs ...[2]int) []contract.VPNGrant {
	list := []contract.VPNGrant{}
	for _, p := range pairs {
		list = append(list, contract.VPNGrant{SourceDomain: nodeNames[p[0]], DestinationDomain: nodeNames[p[1]]})
	}
	return list
}

// apply pushes the next revision of the network, and waits until it is effective: no
// packet leaves the hub that only the revision before allowed. It returns the revision
// that the relay says is in force: in its answer, or in /status where it answered before.
func (c *cluster) apply(ctx context.Context, list []contract.VPNGrant) (int64, error) {
	next := c.network
	next.Revision++
	next.Grants = list
	answer, err := c.cloudly.ApplyNetwork(ctx, next)
	if err != nil {
		return 0, fmt.Errorf("cloudly pushes revision %d of the network: %w", next.Revision, err)
	}
	c.network = next
	if answer.State == contract.VPNNetworkIdle {
		return answer.AppliedRevision, nil
	}
	d, err := c.relay.console.until(ctx, func(d document) error {
		if n := d.Duties.Hub.Network; n == nil || n.Revision != next.Revision || n.State != string(contract.VPNNetworkIdle) {
			return mismatch(fmt.Sprintf("revision %d applied", next.Revision), "the hub shows %+v", n)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return d.Duties.Hub.Network.Revision, nil
}

// inForce returns the network that the relay shows, which has to be the one that Cloudly
// pushed last, and says what that allows.
func (c *cluster) inForce(e *evidence, d document) (*client.HubNetwork, error) {
	pushed, err := c.pushed()
	if err != nil {
		return nil, err
	}
	n := d.Duties.Hub.Network
	if n == nil {
		return nil, mismatch("a network in force", "none")
	}
	said := func(revision int64, state string, members, grants uint64) string {
		return fmt.Sprintf("revision %d, %s, with %s and %s", revision, state, count(members, "member"), count(grants, "grant"))
	}
	want := said(pushed.Revision, string(contract.VPNNetworkIdle), uint64(len(pushed.Nodes)), uint64(len(pushed.Grants)))
	if got := said(n.Revision, n.State, n.Members, n.Grants); got != want {
		return nil, mismatch("the network that Cloudly pushed in force: "+want, "%s", got)
	}
	var pairs []string
	for _, g := range pushed.Grants {
		pairs = append(pairs, g.SourceDomain+" to "+g.DestinationDomain)
	}
	allowed := strings.Join(pairs, ", ")
	e.add(cloudlyName, "pushed a network that allows "+allowed, "grants", allowed)
	return n, nil
}

// pushed returns the network that Cloudly pushed last, by its record.
func (c *cluster) pushed() (contract.VPNNetwork, error) {
	sent := c.cloudly.Frames().Sent(contract.MethodApplyVPNNetwork)
	if len(sent) == 0 {
		return contract.VPNNetwork{}, mismatch("a network that was pushed", "none")
	}
	request, err := contract.ReadApplyVPNNetworkRequest(sent[len(sent)-1].Body)
	return request.Network, err
}
