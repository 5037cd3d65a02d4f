package hub

import (
	"context"
	"errors"
	"fmt"

	"serve.zone/relay/contract"
	"serve.zone/relay/duty/field"
	"serve.zone/relay/typedsocket"
)

// errOver is a pull whose answer is nobody's any more, errNotTaken one whose network
// could not be taken over.
var (
	errOver     = errors.New("custody ended meanwhile")
	errNotTaken = errors.New("it could not be taken over")
)

// Pull asks Cloudly for the network, as it is done after every accepted registration
// of the relay (contract §5.6, step 9; §10.4). Null empties the hub. Where a network was
// pushed meanwhile, null may have been answered before it or behind it: Pull asks again,
// since an answer to what is asked behind the push is the newer. It takes nothing over
// once ctx has ended or custody has.
func (h *Hub) Pull(ctx context.Context, sock *typedsocket.Socket) error {
	ctx, cancel := context.WithTimeout(ctx, pullBound)
	defer cancel()
	custody, _ := h.order()
	for {
		overtaken, err := h.pull(ctx, sock, custody)
		if err != nil {
			return fmt.Errorf("hub: pull the network: %w", err)
		}
		if !overtaken {
			return nil
		}
	}
}

// pull asks once, and reports whether the answer was that there is none and a push
// overtook it.
func (h *Hub) pull(ctx context.Context, sock *typedsocket.Socket, custody uint64) (overtaken bool, err error) {
	_, came := h.order()
	answer, err := h.cfg.Call(ctx, sock, contract.MethodGetVPNNetwork, contract.Empty{}.AppendJSON(nil),
		typedsocket.CallOptions{Timeout: pullWait})
	if err != nil {
		h.metrics.networks.Of(pulled, networkUnanswered).Inc()
		return false, err
	}
	read, err := contract.ReadGetVPNNetworkAnswer(answer.Response())
	answer.Release()
	if err != nil {
		h.refuseNetwork(pulled, networkInvalid, 0, field.Error(err))
		return false, err
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	o := h.takeOver(read.Network, pulled, custody, came)
	if refused, ok := o.decision.Refusal(); ok {
		return false, &refused
	}
	switch o.how {
	case networkNotReady:
		return false, errOver
	case networkFailed:
		return false, errNotTaken
	}
	return o.how == networkStale, nil
}

// order returns which custody this is, and how many pushes have come.
func (h *Hub) order() (custody, came uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.custody, h.came
}
