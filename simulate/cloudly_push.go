package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// ErrNodeNotConnected is the error of a push for a node whose session is not
// registered over the socket that carries the relay.
var ErrNodeNotConnected = errors.New("node is not registered over the relay's socket")

// ErrAnswer is an accepted answer that does not bind to its request.
var ErrAnswer = errors.New("the answer does not bind to the request")

// Call sends any request to the registered relay and returns the bytes of the
// answer. A refusal is a *typedsocket.RemoteError; see Named.
func (c *Cloudly) Call(ctx context.Context, method string, body []byte) (contract.Raw, error) {
	c.mu.Lock()
	if c.registered == nil {
		c.mu.Unlock()
		return nil, errNotRegistered
	}
	socket := c.registered.socket
	c.mu.Unlock()
	return call(ctx, socket, method, body)
}

// CallSocket sends any request on one of the sockets that stand, whatever was
// registered there.
func (c *Cloudly) CallSocket(ctx context.Context, number int, method string, body []byte) (contract.Raw, error) {
	c.mu.Lock()
	s := c.sockets[number]
	if s == nil || s.socket == nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("socket %d: %w", number, typedsocket.ErrClosed)
	}
	socket := s.socket
	c.mu.Unlock()
	return call(ctx, socket, method, body)
}

// CallNode sends a request to a node, under the session that Cloudly holds for
// it. Members is an object with everything but the session.
func (c *Cloudly) CallNode(ctx context.Context, id, method string, members []byte) (contract.Raw, error) {
	c.mu.Lock()
	n := c.cluster.known(id)
	if n == nil || !c.connected(n) {
		c.mu.Unlock()
		return nil, ErrNodeNotConnected
	}
	socket := c.registered.socket
	body := compose().value("session", n.current.binding).spread(members).end()
	c.mu.Unlock()
	return call(ctx, socket, method, body)
}

// call waits for an answer as long as the context and the carrier allow, the
// longer one of the two when the context has a deadline of its own.
func call(ctx context.Context, socket *typedsocket.Socket, method string, body []byte) (contract.Raw, error) {
	options := typedsocket.CallOptions{}
	if deadline, ok := ctx.Deadline(); ok {
		options.Timeout = max(time.Until(deadline), typedsocket.CallTimeout)
	}
	answer, err := socket.Call(ctx, method, body, options)
	if err != nil {
		return nil, err
	}
	defer answer.Release()
	return append(contract.Raw(nil), answer.Response()...), nil
}

// Named returns the name that a call was refused with, found as a relay finds
// one: the leading token of the text, else data.code (contract §6.1, O10).
func Named(err error, among contract.Vocabulary) (contract.RefusalName, bool) {
	var remote *typedsocket.RemoteError
	if !errors.As(err, &remote) {
		return "", false
	}
	return contract.FindRefusal(remote.Text, remote.Data, among)
}

// PushConfiguration pushes the cluster configuration, as Cloudly does after it
// was changed (contract §6.3). It goes to the registered relay, or else to the
// newest authenticated socket: a relay that is not enabled yet has no
// registration (design §4, O19).
func (c *Cloudly) PushConfiguration(ctx context.Context) error {
	c.mu.Lock()
	s := c.registered
	if s == nil {
		for _, candidate := range c.sockets {
			if candidate.generation != 0 && (s == nil || candidate.number > s.number) {
				s = candidate
			}
		}
	}
	if s == nil {
		c.mu.Unlock()
		return errNotRegistered
	}
	socket, body := s.socket, c.configuration()
	c.mu.Unlock()
	_, err := call(ctx, socket, c.cfg.PushConfigurationMethod, body)
	return err
}

// ApplyNetwork makes a network the cluster's and pushes it. The answer must bind
// to it (contract §10.4).
func (c *Cloudly) ApplyNetwork(ctx context.Context, network contract.VPNNetwork) (contract.ApplyVPNNetworkAnswer, error) {
	c.SetNetwork(&network)
	request := contract.ApplyVPNNetworkRequest{Network: network}
	body, err := c.Call(ctx, contract.MethodApplyVPNNetwork, request.AppendJSON(nil))
	if err != nil {
		return contract.ApplyVPNNetworkAnswer{}, err
	}
	answer, err := contract.ReadApplyVPNNetworkAnswer(body)
	if err == nil && !answer.Answers(request) {
		err = ErrAnswer
	}
	return answer, err
}

// PushRouteTable makes a table the cluster's and pushes it, and returns the
// revision that the relay holds now, which is never below the pushed one
// (contract §11.1).
func (c *Cloudly) PushRouteTable(ctx context.Context, table contract.RouteTable) (int64, error) {
	c.SetRouteTable(&table)
	body, err := c.Call(ctx, contract.MethodPushRouteTable, contract.PushRouteTableRequest{Table: table}.AppendJSON(nil))
	if err != nil {
		return 0, err
	}
	answer, err := contract.ReadPushRouteTableAnswer(body)
	if err == nil && answer.AppliedRevision < table.Revision {
		err = ErrAnswer
	}
	return answer.AppliedRevision, err
}

// Hold hands a run of renewals to the relay and returns how many it holds, which
// must be how many were sent (contract §9.3).
func (c *Cloudly) Hold(ctx context.Context, run contract.HoldDNSLeaseRenewalsRequest) (int64, error) {
	body, err := c.Call(ctx, contract.MethodHoldDNSLeaseRenewals, run.AppendJSON(nil))
	if err != nil {
		return 0, err
	}
	answer, err := contract.ReadHoldDNSLeaseRenewalsAnswer(body)
	if err == nil && !answer.Answers(run) {
		err = ErrAnswer
	}
	return answer.Held, err
}

// ApplyRenewal delivers one renewal to its node and returns the status that the
// node answered (contract §9.5).
func (c *Cloudly) ApplyRenewal(ctx context.Context, signed contract.SignedDNSLeaseRenewal) (string, error) {
	body, err := c.CallNode(ctx, signed.Renewal.NodeID, contract.MethodApplyDNSLeaseRenewal,
		compose().value("signed", signed).end())
	if err != nil {
		return "", err
	}
	answer, err := contract.ReadApplyDNSLeaseRenewalAnswer(body)
	if err == nil && !answer.Answers(signed.Renewal) {
		err = ErrAnswer
	}
	return answer.Status, err
}
